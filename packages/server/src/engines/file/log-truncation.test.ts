import * as fs from 'node:fs';
import { join } from 'node:path';
import { withTemporaryFolder } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { logStart, nextPosition } from '../chain-hash.ts';
import type { LogEngine, Position } from '../log-engine.ts';
import { chunksOf, entries, readBehind, texts } from '../testing/engine-case.ts';
import { copyFolder, flipBit, writeFolder } from '../testing/folder-copy.ts';
import type { FolderCopy } from '../testing/folder-copy.ts';
import { openFileEngine } from './file-engine.ts';
import { verifyLog } from './log-inspection.ts';
import { truncateLog } from './log-truncation.ts';

const layout = { maxSegmentBytes: 1500, preallocateBytes: 300 };
const words = entries(30, 100);
const positions = words.reduce<Position[]>((all, bytes) => [...all, nextPosition(all.at(-1)!, bytes)], [logStart]);

async function withLog(
  snapshotAt: number | undefined,
  work: (folder: string, copy: FolderCopy) => Promise<void>,
): Promise<void> {
  await withTemporaryFolder(async (parent) => {
    const folder = join(parent, 'data');
    const engine = await openFileEngine({ folder, ...layout });
    for (let at = 0; at < words.length; at += 3) await engine.append(words.slice(at, at + 3), positions[at]!);
    if (snapshotAt !== undefined) await engine.saveSnapshot(positions[snapshotAt]!, chunksOf('state'));
    await engine.close();
    await work(folder, copyFolder(folder));
  });
}

async function withEngine(folder: string, work: (engine: LogEngine) => Promise<void>): Promise<void> {
  const engine = await openFileEngine({ folder, ...layout });
  await work(engine).finally(() => engine.close());
}

/** The log has the entries of `words` up to `end`, from `start` on, and accepts appends. */
async function expectLog(folder: string, end: number, start = 0): Promise<void> {
  await withEngine(folder, async (engine) => {
    expect(await engine.tail()).toEqual(positions[end]);
    const read = await readBehind(engine, positions[start]!, end - start);
    expect(texts(read)).toEqual(words.slice(start, end).map(String));
    await engine.append([Buffer.from('more')], positions[end]!);
  });
  expect((await verifyLog(folder)).damage).toEqual([]);
}

test('a log can be truncated after any entry, and the removed part is kept beside it', async () => {
  await withLog(undefined, async (folder, copy) => {
    for (let after = 0; after <= 30; after++) {
      writeFolder(folder, copy);
      const truncation = await truncateLog(folder, after);
      expect(truncation).toMatchObject({ lastIndex: after, copyFolder: join(folder, `cut-after-${after}-1`) });
      for (const name of truncation.files) {
        expect(fs.readFileSync(join(truncation.copyFolder, name)).equals(copy.get(name)!), `${after}: ${name}`).toBe(
          true,
        );
      }
      await expectLog(folder, after);
    }
  });
});

test('the remedy in the refusal of a damaged log works', async () => {
  await withLog(undefined, async (folder, copy) => {
    const second = [...copy.keys()].filter((name) => name.startsWith('log-'))[1]!;
    writeFolder(folder, flipBit(copy, second, 8 * 500));
    const refusal = await openFileEngine({ folder }).catch((error: Error) => error.message);
    const after = Number(/tenure log truncate --data-dir \S+ --after (\d+)/.exec(String(refusal))![1]);
    expect(after).toBeGreaterThan(5);
    await truncateLog(folder, after);
    await expectLog(folder, after);
  });
});

test('damage before the snapshot costs no entry after the snapshot', async () => {
  await withLog(25, async (folder, copy) => {
    const first = [...copy.keys()][0]!;
    writeFolder(folder, flipBit(copy, first, 8 * 100));
    await expect(openFileEngine({ folder })).rejects.toMatchObject({ code: 'damaged' });
    const { recoverableIndex } = await verifyLog(folder);
    expect(recoverableIndex).toBe(30);
    await truncateLog(folder, recoverableIndex);
    await expectLog(folder, 30, 25);
  });
});

test('damage in the segment of the snapshot keeps the snapshot', async () => {
  await withLog(2, async (folder, copy) => {
    const first = [...copy.keys()].find((name) => name.startsWith('log-'))!;
    writeFolder(folder, flipBit(copy, first, 8 * 100));
    const { recoverableIndex } = await verifyLog(folder);
    expect(recoverableIndex).toBe(2);
    await truncateLog(folder, recoverableIndex);
    await expectLog(folder, 2, 2);
  });
});

test('it is refused beyond the end, before the snapshot, and while a server runs', async () => {
  await withLog(20, async (folder, copy) => {
    await expect(truncateLog(folder, 31)).rejects.toMatchObject({ code: 'unusable', message: /up to entry 30 only/ });
    await expect(truncateLog(folder, 19)).rejects.toMatchObject({
      code: 'unusable',
      message: /snapshot stands at entry 20/,
    });
    expect(copyFolder(folder)).toEqual(copy);
    await withEngine(folder, async () => {
      await expect(truncateLog(folder, 25)).rejects.toMatchObject({ code: 'locked' });
    });
  });
});
