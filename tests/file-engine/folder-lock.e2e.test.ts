import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withTemporaryFolder } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { openFileEngine } from '../../packages/server/src/engines/file/file-engine.ts';
import { entry } from '../../packages/server/src/engines/testing/engine-case.ts';
import { TestedServer } from '../robustness/tested-server.ts';
import { WriterProcess, checkLog } from './writer-process.ts';

const appends = 3;

test('a second process is refused with the pid of the holder, also while the holder is suspended', async () => {
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

test('a second engine in the same process is refused too', async () => {
  await withTemporaryFolder(async (folder) => {
    const engine = await openFileEngine({ folder });
    await expect(openFileEngine({ folder })).rejects.toMatchObject({ code: 'locked' });
    await engine.close();
    await (await openFileEngine({ folder })).close();
  });
});

test('kill -9 frees the folder at once, repeatedly', async () => {
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

test('of many processes that start together exactly one gets the folder', async () => {
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

function removeLockFile(folder: string): void {
  const sockets = readdirSync(folder).filter((name) => name.endsWith('.socket'));
  expect(sockets).toHaveLength(1);
  for (const name of sockets) rmSync(join(folder, name));
}

const removed = /lock-\d+-[0-9a-f]+\.socket, the lock on the data folder, was removed or the folder was moved/;

test('an idle server whose lock file is removed stops by itself', async () => {
  await withTemporaryFolder(async (dataDir) => {
    const server = await TestedServer.start({ dataDir });
    removeLockFile(dataDir);
    const { code, err } = await server.process.ended;
    server.client.close();
    expect(code).toBe(1);
    expect(err).toMatch(removed);
  });
});

test('an idle server whose folder was replaced by a file stops by itself', async () => {
  await withTemporaryFolder(async (parent) => {
    const dataDir = join(parent, 'data');
    const server = await TestedServer.start({ dataDir });
    renameSync(dataDir, `${dataDir}-moved`);
    writeFileSync(dataDir, '');
    const { code, err } = await server.process.ended;
    server.client.close();
    expect(code).toBe(1);
    expect(err).toMatch(/the lock on the data folder, cannot be looked at \(ENOTDIR\)/);
  });
});

test.each([
  ['removed', removeLockFile],
  ['moved with its folder', (folder: string) => renameSync(folder, `${folder}-moved`)],
])('no write is acknowledged once the lock file was %s', async (_, take) => {
  await withTemporaryFolder(async (parent) => {
    const folder = join(parent, 'data');
    const engine = await openFileEngine({ folder });
    const end = await engine.append([entry('one')], await engine.tail());
    take(folder);
    await expect(engine.append([entry('two')], end)).rejects.toMatchObject({ code: 'fatal', message: removed });
    await engine.close();
  });
});

test('an engine whose folder was replaced by a file can be closed', async () => {
  await withTemporaryFolder(async (parent) => {
    const folder = join(parent, 'data');
    const engine = await openFileEngine({ folder });
    renameSync(folder, `${folder}-moved`);
    writeFileSync(folder, '');
    await expect(engine.close()).resolves.toBeUndefined();
    await (await openFileEngine({ folder: `${folder}-moved` })).close();
  });
});

test('a write in flight when the lock file was removed is not acknowledged', async () => {
  await withTemporaryFolder(async (folder) => {
    const engine = await openFileEngine({ folder });
    const appending = engine.append([entry('one')], await engine.tail());
    removeLockFile(folder);
    await expect(appending).rejects.toMatchObject({ code: 'fatal', message: removed });
    await engine.close();
  });
});

test.runIf(process.platform === 'linux')(
  'a folder in use is refused by any path, even without its lock file',
  async () => {
    await withTemporaryFolder(async (parent) => {
      const folder = join(parent, 'data');
      const link = join(parent, 'link');
      symlinkSync(folder, link);
      const holder = new WriterProcess({ folder, appends, stay: true });
      try {
        await holder.line('done');
        removeLockFile(folder);
        for (const path of [folder, link]) {
          await expect(openFileEngine({ folder: path })).rejects.toMatchObject({ code: 'locked' });
        }
      } finally {
        await holder.kill();
      }
      await checkLog({ folder: link, appends }, 9, 0);
    });
  },
);

const ownNetwork = ['unshare', '--net', '--'];
const canUnshare = spawnSync(ownNetwork[0]!, [...ownNetwork.slice(1), 'true']).status === 0;
if (!canUnshare) console.log('skipped: locks of other containers need permission to create a network namespace');

test.runIf(canUnshare)('another container sees the lock file; when the file is gone, the holder stops', async () => {
  await withTemporaryFolder(async (folder) => {
    const engine = await openFileEngine({ folder });
    const end = await engine.append([entry('one')], await engine.tail());
    const refused = new WriterProcess({ folder, appends }, { under: ownNetwork });
    expect(await refused.line('failed')).toMatch(/^locked/);
    await refused.exited;
    removeLockFile(folder);
    const other = new WriterProcess({ folder, appends, stay: true }, { under: ownNetwork });
    try {
      expect(await other.line('done')).toBe('');
      await expect(engine.append([entry('two')], end)).rejects.toMatchObject({ code: 'fatal', message: removed });
      await engine.close();
      // The lock file now belongs to the other container.
      await expect(openFileEngine({ folder })).rejects.toMatchObject({ code: 'locked' });
    } finally {
      await other.kill();
    }
    const again = await openFileEngine({ folder });
    expect((await again.tail()).index).toBe(1 + 3 * appends);
    await again.close();
  });
});
