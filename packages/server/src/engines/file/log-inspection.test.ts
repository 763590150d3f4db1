import * as fs from 'node:fs';
import { join } from 'node:path';
import { withTemporaryFolder } from '@tenure/test-support';
import { describe, expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import type { LogEngine, Position } from '../log-engine.ts';
import { chunksOf, entries } from '../testing/engine-case.ts';
import { changeFile, copyFolder, flipBit, writeFolder } from '../testing/folder-copy.ts';
import { openFileEngine } from './file-engine.ts';
import { dumpLog, verifyLog } from './log-inspection.ts';
import type { DumpedEntry } from './log-inspection.ts';

const layout = { maxSegmentBytes: 1500, preallocateBytes: 300 };
const words = entries(30, 100);

/** Thirty entries, three per append, in several segments. */
async function withLog(
  work: (folder: string, positions: readonly Position[], engine: LogEngine) => Promise<void>,
): Promise<void> {
  await withTemporaryFolder(async (parent) => {
    const folder = join(parent, 'data');
    const engine = await openFileEngine({ folder, ...layout });
    const positions: Position[] = [logStart];
    for (let at = 0; at < words.length; at += 3) {
      positions.push(await engine.append(words.slice(at, at + 3), positions.at(-1)!));
    }
    await work(folder, positions, engine).finally(() => engine.close());
  });
}

async function collect(dumped: AsyncIterable<DumpedEntry>): Promise<DumpedEntry[]> {
  const all: DumpedEntry[] = [];
  for await (const one of dumped) all.push(one);
  return all;
}

function segments(folder: string): string[] {
  return fs.readdirSync(folder).filter((name) => name.startsWith('log-'));
}

describe('verifying a log', () => {
  test('reports the contents, with and without a running server', async () => {
    await withLog(async (folder, positions, engine) => {
      await engine.saveSnapshot(positions[5]!, chunksOf('state'));
      const running = await verifyLog(folder);
      expect(running).toMatchObject({ inUse: true, entries: 30, firstIndex: 1, lastIndex: 30, damage: [] });
      expect(running.snapshot?.position).toEqual(positions[5]);
      expect(running.segments.map(({ file }) => file)).toEqual(segments(folder).map((name) => join(folder, name)));
      await engine.close();
      const before = copyFolder(folder);
      const report = await verifyLog(folder);
      expect(report).toMatchObject({ inUse: false, recoverableIndex: 30, unfinished: undefined });
      expect(copyFolder(folder)).toEqual(before);
    });
  });

  test('lists all damage, and the recoverable part of the log', async () => {
    await withLog(async (folder, positions, engine) => {
      await engine.saveSnapshot(positions[1]!, chunksOf('state', 'more'));
      await engine.close();
      const [, second, third] = segments(folder);
      const snapshot = fs.readdirSync(folder).find((name) => name.startsWith('snapshot-'))!;
      let copy = flipBit(copyFolder(folder), second!, 8 * 500);
      copy = flipBit(copy, third!, 8 * 200);
      copy = flipBit(copy, snapshot, 8 * 75);
      writeFolder(folder, copy);
      const report = await verifyLog(folder);
      expect(report.damage.map(({ in: where, file }) => [where, file])).toEqual([
        ['log', join(folder, second!)],
        ['log', join(folder, third!)],
        ['snapshot', join(folder, snapshot)],
      ]);
      expect(report.recoverableIndex).toBe(report.damage[0]!.lastGoodIndex);
      expect(report.recoverableIndex).toBeGreaterThan(5);
    });
  });

  test('distinguishes an unfinished append from damage', async () => {
    await withLog(async (folder, _, engine) => {
      await engine.close();
      const last = segments(folder).at(-1)!;
      writeFolder(
        folder,
        changeFile(copyFolder(folder), last, (bytes) => bytes.subarray(0, 300)),
      );
      const report = await verifyLog(folder);
      expect(report.damage).toEqual([]);
      expect(report.unfinished).toMatchObject({ file: join(folder, last), offset: 64, bytes: 236 });
    });
  });

  test('of a missing folder is refused, and does not create it', async () => {
    await withTemporaryFolder(async (parent) => {
      const folder = join(parent, 'nowhere');
      await expect(verifyLog(folder)).rejects.toMatchObject({ code: 'unusable' });
      await expect(collect(dumpLog(folder))).rejects.toMatchObject({ code: 'unusable' });
      expect(fs.existsSync(folder)).toBe(false);
    });
  });

  test('of a folder without a log finds an empty one', async () => {
    await withTemporaryFolder(async (folder) => {
      expect(await verifyLog(folder)).toMatchObject({ entries: 0, firstIndex: 0, lastIndex: 0, damage: [] });
      expect(fs.readdirSync(folder)).toEqual([]);
    });
  });
});

describe('dumping a log', () => {
  test('returns each entry of the range with its hash and file offset, also while a server runs', async () => {
    await withLog(async (folder, positions) => {
      const all = await collect(dumpLog(folder));
      expect(all.map(({ index }) => index)).toEqual(words.map((_, at) => at + 1));
      expect(all.every(({ bytes }, at) => Buffer.compare(bytes, words[at]!) === 0)).toBe(true);
      expect(positions.slice(1).map(({ hash }) => hash)).toEqual(
        all.filter((_, at) => at % 3 === 2).map(({ hash }) => hash),
      );
      for (const { file, offset, bytes } of all) {
        expect(fs.readFileSync(file).subarray(offset).indexOf(bytes)).toBeLessThan(400);
      }
      const some = await collect(dumpLog(folder, { from: 8, to: 20 }));
      expect(some).toEqual(all.slice(7, 20));
      expect(await collect(dumpLog(folder, { from: 31 }))).toEqual([]);
    });
  });

  test('stops at damage with an error that names the place, after the entries before it', async () => {
    await withLog(async (folder, _, engine) => {
      await engine.close();
      const second = segments(folder)[1]!;
      writeFolder(folder, flipBit(copyFolder(folder), second, 8 * 500));
      const seen: number[] = [];
      const dumping = (async () => {
        for await (const { index } of dumpLog(folder)) seen.push(index);
      })();
      await expect(dumping).rejects.toMatchObject({ code: 'damaged', message: expect.stringContaining(second) });
      expect(seen.length).toBeGreaterThan(3);
      expect(await collect(dumpLog(folder, { from: 25 }))).toHaveLength(6);
    });
  });
});
