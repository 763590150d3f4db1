import fc from 'fast-check';
import { join } from 'node:path';
import { withTemporaryFolder } from '@tenure/test-support';
import { describe, expect, inject, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { changeFile, copyFolder, flipBit, openCopy, writeFolder } from '../testing/folder-copy.ts';
import type { FolderCopy, Opened } from '../testing/folder-copy.ts';
import { openFileEngine } from './file-engine.ts';
import { scanFolder } from './folder-scan.ts';
import { nodeFileSystem } from './node-file-system.ts';

const effort = inject('effort');
const timeout = 1_800_000;
const crashes = { commit: 20, ci: 60, soak: 2_000 }[effort];
const damages = { commit: 50, ci: 150, soak: 5_000 }[effort];
/** The bytes and bits to try one by one: a sample chosen by the seed of the run, or all of them. */
const stride = { commit: 9, ci: 1, soak: 1 }[effort];
const firstTried = Math.abs(inject('seed')) % stride;

interface Layout {
  readonly maxSegmentBytes: number;
  readonly preallocateBytes: number;
}

/** The files of a log after its last append was acknowledged, or after it was closed. */
interface WrittenLog {
  readonly copy: FolderCopy;
  readonly entries: readonly string[];
  /** The number of entries before the last append. */
  readonly beforeLast: number;
  /** The last record of a batch. */
  readonly last: { readonly file: string; readonly offset: number; readonly end: number };
}

const inOneFile: Layout = { maxSegmentBytes: 1024 * 1024, preallocateBytes: 0 };
const inOneFileWithRoom: Layout = { maxSegmentBytes: 1024 * 1024, preallocateBytes: 3000 };
const inManyFiles: Layout = { maxSegmentBytes: 1200, preallocateBytes: 500 };

const layouts = fc.constantFrom(inOneFile, inOneFileWithRoom, inManyFiles);
const shortText = fc.string({ maxLength: 40 });
/** Long enough for a record to span several disk units. */
const longText = fc
  .tuple(shortText, fc.integer({ min: 0, max: 1500 }))
  .map(([text, bytes]) => `x${text}`.repeat(bytes >>> 3));
const batches = fc.array(fc.array(fc.oneof(shortText, longText), { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 8,
});

async function writeLog(
  folder: string,
  layout: Layout,
  content: readonly (readonly string[])[],
  end: 'crash' | 'close',
): Promise<WrittenLog> {
  writeFolder(folder, new Map());
  const engine = await openFileEngine({ folder, ...layout });
  let tail = logStart;
  for (const batch of content)
    tail = await engine.append(
      batch.map((text) => Buffer.from(text)),
      tail,
    );
  const crashed = copyFolder(folder);
  const scan = await scanFolder(nodeFileSystem, folder);
  await engine.close();
  const segment = scan.segments.at(-1)!;
  const last = { file: segment.path.slice(folder.length + 1), offset: segment.lastRecord!.offset, end: segment.bytes };
  const entries = content.flat();
  const beforeLast = entries.length - content.at(-1)!.length;
  return { copy: end === 'crash' ? crashed : copyFolder(folder), entries, beforeLast, last };
}

function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  return withTemporaryFolder((parent) => work(join(parent, 'data')));
}

/** An unfinished append is present as a whole or not at all, and everything before it is present. */
function expectWholeOrLastLost(opened: Opened, log: WrittenLog): void {
  expect(opened).toMatchObject({ refused: undefined });
  if (opened.refused !== undefined) return;
  const lost = opened.entries.length === log.beforeLast;
  expect(opened.entries).toEqual(lost ? log.entries.slice(0, log.beforeLast) : log.entries);
}

/** Either everything is there, or the log is refused. */
function expectWholeOrRefused(opened: Opened, log: WrittenLog): void {
  if (opened.refused === undefined) expect(opened.entries).toEqual(log.entries);
  else expect(opened.message).toMatch(/log-\d+\.segment is damaged at offset \d+: .*tenure log verify --data-dir/);
}

/**
 * The possible contents after a write of the last record that stopped at some byte, or that reached only some disk
 * units.
 */
function tornCopies(log: WrittenLog): fc.Arbitrary<FolderCopy> {
  const { file, offset, end } = log.last;
  const cut = fc.integer({ min: offset, max: end });
  const sectors = fc.uniqueArray(fc.integer({ min: Math.floor(offset / 512), max: Math.floor((end - 1) / 512) }), {
    minLength: 1,
  });
  return fc.oneof(
    cut.map((at) => changeFile(log.copy, file, (bytes) => bytes.subarray(0, at))),
    cut.map((at) => changeFile(log.copy, file, (bytes) => bytes.fill(0, at, end))),
    sectors.map((numbers) =>
      changeFile(log.copy, file, (bytes) => {
        for (const number of numbers) bytes.fill(0, Math.max(offset, number * 512), Math.min(end, number * 512 + 512));
        return bytes;
      }),
    ),
  );
}

describe('a crash of the machine', { timeout }, () => {
  test('loses at most the unacknowledged append, and opening is idempotent', async () => {
    await inFolder(async (folder) => {
      const property = fc.asyncProperty(batches, layouts, fc.gen(), async (content, layout, g) => {
        const log = await writeLog(folder, layout, content, 'crash');
        const opened = await openCopy(folder, g(tornCopies, log), layout);
        expectWholeOrLastLost(opened, log);
        const closed = copyFolder(folder);
        const again = await openCopy(folder, closed, layout);
        expectWholeOrLastLost(again, log);
        expect(copyFolder(folder)).toEqual(closed);
        const more = await openFileEngine({ folder, ...layout });
        await more.append([Buffer.from('more')], await more.tail());
        const grown = await openCopy(folder, copyFolder(folder), layout).finally(() => more.close());
        const before = opened.refused === undefined ? opened.entries : [];
        expect(grown).toMatchObject({ refused: undefined, entries: [...before, 'more'] });
      });
      await fc.assert(property, { numRuns: crashes });
    });
  });

  for (const [name, layout] of Object.entries({ inOneFile, inOneFileWithRoom })) {
    test(`at every byte of the last append is survived (${name})`, async () => {
      await inFolder(async (folder) => {
        const content = [['one', 'two'], ['x'.repeat(650)], ['three', '', 'four '.repeat(60)]];
        const log = await writeLog(folder, layout, content, 'crash');
        const { file, offset, end } = log.last;
        for (let at = offset + firstTried; at <= end; at += stride) {
          const cut = changeFile(log.copy, file, (bytes) => bytes.subarray(0, at));
          expectWholeOrLastLost(await openCopy(folder, cut, layout), log);
          const unwritten = changeFile(log.copy, file, (bytes) => bytes.fill(0, at, end));
          expectWholeOrLastLost(await openCopy(folder, unwritten, layout), log);
        }
      });
    });
  }
});

describe('a disk that lost a part of the log', { timeout }, () => {
  test('is detected unless the part is in the last append and was written since the log was opened', async () => {
    await inFolder(async (folder) => {
      const ends = fc.constantFrom('crash' as const, 'close' as const);
      const property = fc.asyncProperty(batches, layouts, ends, fc.nat(), async (content, layout, end, place) => {
        const log = await writeLog(folder, layout, content, end);
        const files = [...log.copy.keys()];
        const file = files[place % files.length]!;
        const isLast = file === log.last.file;
        const length = end === 'crash' && isLast ? log.last.offset : isLast ? log.last.end : log.copy.get(file)!.length;
        const lost = (place % length) - ((place % length) % 512);
        const holed = changeFile(log.copy, file, (bytes) => bytes.fill(0, lost, Math.min(lost + 512, length)));
        expectWholeOrRefused(await openCopy(folder, holed, layout), log);
      });
      await fc.assert(property, { numRuns: damages });
    });
  });
});

describe('a flipped bit', { timeout }, () => {
  test('anywhere in the log is refused or harmless, never a lost entry', async () => {
    await inFolder(async (folder) => {
      const ends = fc.constantFrom('crash' as const, 'close' as const);
      const property = fc.asyncProperty(batches, layouts, ends, fc.nat(), async (content, layout, end, place) => {
        const log = await writeLog(folder, layout, content, end);
        const files = [...log.copy.keys()];
        const file = files[place % files.length]!;
        const opened = await openCopy(
          folder,
          flipBit(log.copy, file, place % (log.copy.get(file)!.length * 8)),
          layout,
        );
        expectWholeOrRefused(opened, log);
      });
      await fc.assert(property, { numRuns: damages });
    });
  });

  for (const end of ['crash', 'close'] as const) {
    test(`in the last append is refused, each of them, after a ${end}`, async () => {
      await inFolder(async (folder) => {
        const log = await writeLog(
          folder,
          inOneFileWithRoom,
          [
            ['one', 'two'],
            ['three', 'four', ''],
          ],
          end,
        );
        const { file, offset, end: recordEnd } = log.last;
        for (let bit = offset * 8 + firstTried; bit < recordEnd * 8; bit += stride) {
          const opened = await openCopy(folder, flipBit(log.copy, file, bit), inOneFileWithRoom);
          expect(opened.refused, `bit ${bit}`).toBe('damaged');
          expectWholeOrRefused(opened, log);
        }
      });
    });
  }
});
