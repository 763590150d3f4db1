import { describe, expect, inject, test } from 'vitest';
import { SeededRandom, withTemporaryFolder } from '@tenure/test-support';
import { WriterProcess, busyWriter, checkLog, straceWorks } from './writer-process.ts';

/** The calls that write, and which of them fail: a busy writer makes more of each. */
const calls = {
  pwrite64: { first: 1, last: 70 },
  fdatasync: { first: 1, last: 55 },
  fsync: { first: 1, last: 16 },
  rename: { first: 2, last: 12 },
  // The first calls of the main thread belong to the lock, not to the log.
  unlink: { first: 3, last: 9 },
  ftruncate: { first: 1, last: 5 },
};

function someCall(call: keyof typeof calls, random: SeededRandom): number {
  const { first, last } = calls[call];
  return random.integer(first, last);
}

const seed = inject('seed');
const effort = inject('effort');
const kills = { commit: 2, ci: 2, soak: 4 }[effort];
const recoveries = { commit: 10, ci: 10, soak: 25 }[effort];
const failures = { commit: 1, ci: 1, soak: 3 }[effort];

const haveStrace = straceWorks();

describe.runIf(haveStrace).concurrent(`a process that is killed (TENURE_TEST_SEED=${seed})`, () => {
  for (const call of Object.keys(calls) as (keyof typeof calls)[]) {
    test(`at some ${call} leaves a log with every acknowledged entry`, async () => {
      const random = new SeededRandom(seed);
      for (let round = 0; round < kills; round++) {
        const when = someCall(call, random);
        await withTemporaryFolder(async (folder) => {
          const writer = new WriterProcess(busyWriter(folder), {
            injections: [`${call}:signal=SIGKILL:when=${when}`],
          });
          await writer.exited;
          const where = `${call} number ${when}`;
          expect(writer.lines('done'), where).toEqual([]);
          expect(writer.lines('failed'), where).toEqual([]);
          const end = await checkLog(busyWriter(folder), writer.last('acked'), writer.last('saved'));
          expect(await checkLog(busyWriter(folder), end, writer.last('saved')), where).toBe(end);
        });
      }
    });
  }
});

describe.runIf(haveStrace).concurrent('a process that is killed again while it recovers', () => {
  test('loses nothing at any point of the recovery', async () => {
    await withTemporaryFolder(async (folder) => {
      const options = { ...busyWriter(folder), appends: 12 };
      let acked = 0;
      let saved = 0;
      let unknownAppends = 0;
      const random = new SeededRandom(seed);
      for (let round = 0; round < recoveries; round++) {
        const call = ['pwrite64', 'fdatasync', 'fsync', 'ftruncate'][round % 4]!;
        const when = random.integer(1, round % 3 === 0 ? 25 : 4);
        const writer = new WriterProcess(options, { injections: [`${call}:signal=SIGKILL:when=${when}`] });
        await writer.exited;
        const where = `round ${round}: ${call} number ${when}`;
        expect(writer.lines('failed'), where).toEqual([]);
        saved = Math.max(saved, writer.last('saved'));
        if (writer.lines('open').length === 0) continue;
        const found = writer.last('open');
        expect(found, where).toBeGreaterThanOrEqual(acked);
        expect(found, where).toBeLessThanOrEqual(acked + unknownAppends * 3);
        acked = Math.max(found, writer.last('acked'));
        unknownAppends = writer.lines('done').length > 0 ? 0 : 1;
      }
      await checkLog(options, acked, saved);
    });
  });
});

test('a file that may not grow is written up to its limit, and every acknowledged entry is found', async () => {
  await withTemporaryFolder(async (folder) => {
    const limits = { maxSegmentBytes: 1024 * 1024, preallocateBytes: 0 };
    const options = { folder, appends: 200, entryBytes: 777, limits };
    const writer = new WriterProcess(options, { maxFileKib: 100 });
    await writer.exited;
    expect(writer.lines('failed')[0]).toMatch(/^fatal .*EFBIG/);
    expect(writer.last('acked')).toBeGreaterThan(90);
    await checkLog(options, writer.last('acked'), 0);
  });
});

describe.runIf(haveStrace).concurrent(`a disk that fails (TENURE_TEST_SEED=${seed})`, () => {
  const faults = [
    { call: 'pwrite64', error: 'EIO' },
    { call: 'pwrite64', error: 'ENOSPC' },
    { call: 'fdatasync', error: 'EIO' },
    { call: 'fdatasync', error: 'ENOSPC' },
    { call: 'fsync', error: 'EIO' },
    { call: 'rename', error: 'EIO' },
    { call: 'unlink', error: 'EIO' },
    { call: 'ftruncate', error: 'EIO' },
  ] as const;
  for (const { call, error } of faults) {
    test(`with ${error} on ${call} stops the writer, and a restart finds every acknowledged entry`, async () => {
      const random = new SeededRandom(seed);
      for (let round = 0; round < failures; round++) {
        const when = someCall(call, random);
        await withTemporaryFolder(async (folder) => {
          const writer = new WriterProcess(busyWriter(folder), {
            injections: [`${call}:error=${error}:when=${when}`],
          });
          await writer.exited;
          const where = `${error} on ${call} number ${when}`;
          const failed = writer.lines('failed');
          // A lack of space for a snapshot, or ahead of the log, does no harm: the log continues without it.
          const wentOn =
            failed[0]?.startsWith('full there is no room for the snapshot') ?? writer.lines('done').length > 0;
          const isHarmless = error === 'ENOSPC' && call === 'pwrite64' && wentOn;
          if (isHarmless) {
            await checkLog(busyWriter(folder), writer.last('acked'), writer.last('saved'));
            return;
          }
          expect(failed[0], where).toMatch(error);
          expect(failed[0], where).toMatch(/^fatal /);
          const wasOpen = writer.lines('open').length > 0;
          if (wasOpen) {
            expect(failed.length, where).toBe(4);
            for (const failure of failed) expect(failure, where).toMatch(/^fatal .*the server must stop/);
          }
          await checkLog(busyWriter(folder), writer.last('acked'), writer.last('saved'));
        });
      }
    });
  }
});
