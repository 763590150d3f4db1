import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openFileEngine } from '../../packages/server/src/engines/file/file-engine.ts';
import { withTemporaryFolder } from '../../packages/server/src/engines/testing/temporary-folder.ts';
import { WriterProcess, checkLog } from './writer-process.ts';

const appends = 3;

test('a second process is refused and told who holds the folder, also while the holder is stopped', async () => {
  await withTemporaryFolder(async (folder) => {
    const holder = new WriterProcess({ folder, appends, stay: true });
    try {
      await holder.line('done');
      const refusal = { code: 'locked', message: expect.stringContaining(`process ${holder.process.pid}`) };
      await expect(openFileEngine({ folder })).rejects.toMatchObject(refusal);
      const second = new WriterProcess({ folder, appends });
      expect(await second.line('failed')).toMatch(/^locked/);
      await second.exited;
      holder.process.kill('SIGSTOP');
      await expect(openFileEngine({ folder })).rejects.toMatchObject(refusal);
    } finally {
      await holder.kill();
    }
    await checkLog({ folder, appends }, 9, 0);
    expect(readdirSync(folder).filter((name) => name.includes('socket'))).toEqual([]);
  });
});

test('within one process too', async () => {
  await withTemporaryFolder(async (folder) => {
    const engine = await openFileEngine({ folder });
    await expect(openFileEngine({ folder })).rejects.toMatchObject({ code: 'locked' });
    await engine.close();
    await (await openFileEngine({ folder })).close();
  });
});

test('kill -9 frees the folder at once, however often', async () => {
  await withTemporaryFolder(async (folder) => {
    for (let round = 1; round <= 5; round++) {
      const holder = new WriterProcess({ folder, appends, stay: true });
      expect(await holder.line('done')).toBe('');
      await holder.kill();
      expect(holder.lines('failed')).toEqual([]);
      await checkLog({ folder, appends }, 9 * round, 0);
    }
  });
});

test('of many that start together exactly one gets it', async () => {
  await withTemporaryFolder(async (folder) => {
    const many = Array.from({ length: 6 }, () => new WriterProcess({ folder, appends: 1, stay: true }));
    try {
      const outcomes = await Promise.all(many.map((one) => Promise.race([one.line('done'), one.line('failed')])));
      const holders = outcomes.filter((outcome) => outcome === '');
      expect(holders, outcomes.join('\n')).toHaveLength(1);
      for (const outcome of outcomes) if (outcome !== '') expect(outcome).toMatch(/^locked/);
    } finally {
      await Promise.all(many.map((one) => one.kill()));
    }
  });
});

test('a folder with a path longer than any socket’s can be locked', async () => {
  await withTemporaryFolder(async (parent) => {
    const folder = join(parent, 'a'.repeat(100), 'b'.repeat(100), 'data');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const engine = await openFileEngine({ folder });
    await expect(openFileEngine({ folder })).rejects.toMatchObject({ code: 'locked' });
    await engine.close();
  });
});
