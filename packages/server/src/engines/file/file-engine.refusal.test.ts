import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { crc32 } from 'node:zlib';
import { withTemporaryFolder } from '@tenure/test-support';
import { logStart } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { chunksOf, entries, readChunks } from '../testing/engine-case.ts';
import { changeFile, copyFolder, openCopy, writeFolder } from '../testing/folder-copy.ts';
import type { FolderCopy } from '../testing/folder-copy.ts';
import { openFileEngine } from './file-engine.ts';

const layout = { maxSegmentBytes: 1000, preallocateBytes: 300 };

/** Thirty entries in several segments; with `snapshotAt`, a snapshot there and a trim below it. */
async function writeLog(folder: string, snapshotAt?: number): Promise<FolderCopy> {
  writeFolder(folder, new Map());
  const engine = await openFileEngine({ folder, ...layout });
  const positions: Position[] = [logStart];
  for (const bytes of entries(30, 100)) positions.push(await engine.append([bytes], positions.at(-1)!));
  if (snapshotAt !== undefined) {
    await engine.saveSnapshot(positions[snapshotAt]!, chunksOf('state', 'x'.repeat(5000), 'end'));
    await engine.trim(snapshotAt);
  }
  await engine.close();
  return copyFolder(folder);
}

function segmentsOf(copy: FolderCopy): string[] {
  return [...copy.keys()].filter((name) => name.startsWith('log-'));
}

async function withLog(
  snapshotAt: number | undefined,
  work: (copy: FolderCopy, folder: string) => Promise<void>,
): Promise<void> {
  await withTemporaryFolder(async (parent) => {
    const folder = join(parent, 'data');
    await work(await writeLog(folder, snapshotAt), folder);
  });
}

describe('a log is refused', () => {
  test('when any one of its segments is missing, the message names the place', async () => {
    await withLog(undefined, async (copy, folder) => {
      expect(segmentsOf(copy).length).toBeGreaterThan(3);
      for (const name of segmentsOf(copy)) {
        const opened = await openCopy(
          folder,
          changeFile(copy, name, () => undefined),
          layout,
        );
        expect(opened, name).toMatchObject({ refused: 'damaged', message: expect.stringMatching(/missing/) });
      }
    });
  });

  test('when two segments have each other’s names or contents', async () => {
    await withLog(undefined, async (copy, folder) => {
      const [first, second, third] = segmentsOf(copy);
      const swapped = new Map(copy).set(second!, copy.get(third!)!).set(third!, copy.get(second!)!);
      expect(await openCopy(folder, swapped, layout)).toMatchObject({ refused: 'damaged' });
      const twice = new Map(copy).set(second!, copy.get(first!)!);
      expect(await openCopy(folder, twice, layout)).toMatchObject({ refused: 'damaged' });
    });
  });

  test('when a part of it is duplicated or missing', async () => {
    await withLog(undefined, async (copy, folder) => {
      const record = 64 + 4 + 100 + 4;
      for (const name of segmentsOf(copy)) {
        const from = 64 + record;
        const doubled = changeFile(copy, name, (bytes) =>
          Buffer.concat([bytes.subarray(0, from), bytes.subarray(from - record, from), bytes.subarray(from)]),
        );
        expect(await openCopy(folder, doubled, layout), name).toMatchObject({ refused: 'damaged' });
        const without = changeFile(copy, name, (bytes) =>
          Buffer.concat([bytes.subarray(0, from - record), bytes.subarray(from)]),
        );
        expect(await openCopy(folder, without, layout), name).toMatchObject({ refused: 'damaged' });
      }
    });
  });

  test('when an append is missing before a last one that looks like a torn one', async () => {
    await withTemporaryFolder(async (folder) => {
      const engine = await openFileEngine({ folder, preallocateBytes: 0 });
      let tail = logStart;
      for (const bytes of [Buffer.from('one'), Buffer.from('two')]) tail = await engine.append([bytes], tail);
      await engine.append([Buffer.alloc(3000)], tail);
      const written = copyFolder(folder);
      await engine.close();
      const record = 64 + 4 + 3 + 4;
      const without = changeFile(written, segmentsOf(written)[0]!, (bytes) =>
        Buffer.concat([bytes.subarray(0, 64 + record), bytes.subarray(64 + 2 * record)]),
      );
      const opened = await openCopy(join(folder, 'copy'), without);
      expect(opened).toMatchObject({ refused: 'damaged', message: expect.stringMatching(/follows entry 2/) });
    });
  });

  test('when a segment is replaced by one of another log', async () => {
    await withLog(undefined, async (copy, folder) => {
      const other = await writeLog(folder);
      const name = segmentsOf(copy)[2]!;
      // The entries are the same, so the running hash is too: only the marker differs, and that is accepted.
      expect(await openCopy(folder, new Map(copy).set(name, other.get(name)!), layout)).toMatchObject({
        refused: undefined,
      });
      const engine = await openFileEngine({ folder, ...layout });
      await engine.close();
      writeFolder(folder, new Map());
      const different = await openFileEngine({ folder, ...layout });
      let tail = logStart;
      for (const bytes of entries(30, 100)) tail = await different.append([bytes.toReversed()], tail);
      await different.close();
      const foreign = new Map(copy).set(name, copyFolder(folder).get(name)!);
      const opened = await openCopy(folder, foreign, layout);
      expect(opened).toMatchObject({ refused: 'damaged', message: expect.stringMatching(/belongs to another log/) });
    });
  });

  test('when a part of it is a folder or a pipe, and the message names it in one line', async () => {
    await withLog(10, async (copy, folder) => {
      const [segment = ''] = segmentsOf(copy);
      const snapshot = [...copy.keys()].find((name) => name.startsWith('snapshot-')) ?? '';
      const stand: readonly (readonly [string, (path: string) => void, RegExp])[] = [
        [segment, (path) => fs.mkdirSync(path), /is a folder and has the name of a part of the log: move it away/],
        [snapshot, (path) => fs.mkdirSync(path), /is a folder and/],
        [`${snapshot}.tmp`, (path) => fs.mkdirSync(path), /is a folder and/],
        [segment, (path) => void execFileSync('mkfifo', [path]), /is no file and/],
      ];
      for (const [name, make, words] of stand) {
        const left = new Map(copy);
        left.delete(name);
        writeFolder(folder, left);
        make(join(folder, name));
        const refused = await openFileEngine({ folder, ...layout }).catch((error: Error) => error);
        expect(refused).toMatchObject({ code: 'unusable', message: expect.stringMatching(words) });
        expect((refused as Error).message.split('\n')).toEqual([expect.stringContaining(join(folder, name))]);
        fs.rmSync(folder, { recursive: true });
      }
    });
  });

  test('when a newer program wrote it', async () => {
    await withLog(15, async (copy, folder) => {
      const newer = (crcAt: number) => (bytes: Buffer) => {
        bytes.writeUInt32LE(2, 8);
        bytes.writeUInt32LE(crc32(bytes.subarray(0, crcAt)), crcAt);
        return bytes;
      };
      const segment = segmentsOf(copy)[0]!;
      const snapshot = [...copy.keys()].find((name) => name.startsWith('snapshot-'))!;
      for (const [name, crcAt] of [[segment, 42] as const, [snapshot, 34] as const]) {
        const opened = await openCopy(folder, changeFile(copy, name, newer(crcAt)), layout);
        expect(opened, name).toMatchObject({ refused: 'unusable', message: expect.stringMatching(/format 2.*newer/) });
      }
    });
  });

  test('when the snapshot of its trimmed beginning is missing, or the log after it', async () => {
    await withLog(25, async (copy, folder) => {
      const snapshot = [...copy.keys()].find((name) => name.startsWith('snapshot-'))!;
      const message = expect.stringMatching(/missing/);
      const gone = changeFile(copy, snapshot, () => undefined);
      expect(await openCopy(folder, gone, layout)).toMatchObject({ refused: 'damaged', message });
      const alone = new Map([[snapshot, copy.get(snapshot)!]]);
      expect(await openCopy(folder, alone, layout)).toMatchObject({ refused: 'damaged', message });
    });
  });

  test('when the snapshot is of a later entry than the log holds, or of another log', async () => {
    await withLog(25, async (copy, folder) => {
      const snapshot = [...copy.keys()].find((name) => name.startsWith('snapshot-'))!;
      const rewrite = (hash: string) => (bytes: Buffer) => {
        bytes.write(hash, 18, 'hex');
        bytes.writeUInt32LE(crc32(bytes.subarray(0, 34)), 34);
        return bytes;
      };
      const foreign = changeFile(copy, snapshot, rewrite('ab'.repeat(16)));
      expect(await openCopy(folder, foreign, layout)).toMatchObject({
        refused: 'damaged',
        message: expect.stringMatching(/not a snapshot of this log/),
      });
      const early = await writeLog(folder);
      const behind = new Map([...early].slice(0, 1)).set(snapshot, copy.get(snapshot)!);
      expect(await openCopy(folder, behind, layout)).toMatchObject({ refused: 'damaged' });
    });
  });
});

describe('a snapshot', () => {
  test('with any byte changed, missing or added is refused, when it is opened or read', async () => {
    await withLog(25, async (copy, folder) => {
      const name = [...copy.keys()].find((candidate) => candidate.startsWith('snapshot-'))!;
      const length = copy.get(name)!.length;
      const changes: ((bytes: Buffer) => Buffer)[] = [(bytes) => Buffer.concat([bytes, Buffer.alloc(1)])];
      const isSample = inject('effort') === 'commit';
      const stride = isSample ? 7 : 1;
      for (let at = Math.abs(inject('seed')) % stride; at < length; at += at > 100 && at < length - 100 ? 97 : stride) {
        changes.push((bytes) => bytes.subarray(0, at));
        changes.push((bytes) => bytes.fill(bytes[at]! ^ 0x10, at, at + 1));
      }
      for (const change of changes) {
        const opened = await openCopy(folder, changeFile(copy, name, change), layout);
        expect(opened).toMatchObject({ refused: 'damaged', message: expect.stringMatching(/snapshot-.*offset \d+/) });
      }
    });
  });

  test('is readable to its end while a newer one replaces it', async () => {
    await withLog(25, async (_, folder) => {
      const engine = await openFileEngine({ folder, ...layout });
      const old = await engine.loadSnapshot();
      const reading = old!.chunks[Symbol.asyncIterator]();
      await reading.next();
      await engine.saveSnapshot(await engine.tail(), chunksOf('new'));
      expect((await readChunks({ [Symbol.asyncIterator]: () => reading })).at(-1)).toBe('end');
      await engine.close();
    });
  });
});

describe('opening a folder', () => {
  test('removes the incomplete files of a crash', async () => {
    await withLog(25, async (copy, folder) => {
      const snapshot = [...copy.keys()].find((name) => name.startsWith('snapshot-'))!;
      const littered = new Map(copy)
        .set('snapshot-0000000000000028.snapshot.tmp', Buffer.from('half'))
        .set('log-0000000000000031.segment.tmp', Buffer.alloc(10))
        .set('lock-1-00.socket.tmp', Buffer.alloc(0));
      writeFolder(folder, littered);
      fs.writeFileSync(join(folder, 'notes.txt'), 'not ours');
      await (await openFileEngine({ folder, ...layout })).close();
      expect([...copyFolder(folder).keys()].toSorted()).toEqual([...copy.keys(), 'notes.txt'].toSorted());
      expect(copy.has(snapshot)).toBe(true);
    });
  });

  test('makes it private, and refuses one that is open to all users', async () => {
    await withTemporaryFolder(async (parent) => {
      const made = join(parent, 'deep', 'down');
      await (await openFileEngine({ folder: made })).close();
      expect(fs.statSync(made).mode & 0o777).toBe(0o700);
      for (const name of fs.readdirSync(made)) expect(fs.statSync(join(made, name)).mode & 0o077).toBe(0);
      const empty = join(parent, 'empty');
      fs.mkdirSync(empty);
      fs.chmodSync(empty, 0o755);
      await (await openFileEngine({ folder: empty })).close();
      expect(fs.statSync(empty).mode & 0o777).toBe(0o700);
      fs.chmodSync(empty, 0o755);
      const refusal = { code: 'unusable', message: expect.stringMatching(/chmod 700/) };
      await expect(openFileEngine({ folder: empty })).rejects.toMatchObject(refusal);
      fs.writeFileSync(join(parent, 'file'), '');
      await expect(openFileEngine({ folder: join(parent, 'file') })).rejects.toMatchObject({ code: 'unusable' });
    });
  });

  test('reports the truncated bytes', async () => {
    await withLog(undefined, async (copy, folder) => {
      const last = segmentsOf(copy).at(-1)!;
      writeFolder(
        folder,
        changeFile(copy, last, (bytes) => bytes.subarray(0, 200)),
      );
      const notices: string[] = [];
      const engine = await openFileEngine({ folder, ...layout, onNotice: (notice) => notices.push(notice) });
      expect(notices).toEqual([expect.stringMatching(/cut off \d+ bytes at offset 64.*behind entry \d+/)]);
      await engine.close();
    });
  });
});
