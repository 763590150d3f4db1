import { describe, expect, test } from 'vitest';
import type { AutoCompaction } from '../config/auto-compaction.ts';
import { AutoCompactor } from './auto-compactor.ts';
import { BusyHistory } from './testing/busy-history.ts';
import { VirtualClock } from '@tenure/test-support';

const minuteMs = 60_000;

const clock = new VirtualClock();

function compactorOf(
  policy: AutoCompaction,
  state: { revision: number; refusing?: boolean },
): {
  compacted: number[];
  compactor: AutoCompactor;
} {
  const compacted: number[] = [];
  const compactor = new AutoCompactor({
    clock,
    policy,
    state: () => ({
      currentRevision: state.revision,
      compactRevision: compacted.at(-1) ?? -1,
      sizeBytes: 0,
      sizeInUseBytes: 0,
      isGarbageCollected: true,
    }),
    quotaBytes: 1_000_000,
    oldestWatched: () => undefined,
    compact: (revision) => {
      if (state.refusing === true) return Promise.reject(new Error('the log rejects the append'));
      compacted.push(revision);
      return Promise.resolve();
    },
  });
  return { compacted, compactor };
}

test('revision mode keeps the last revisions and checks every five minutes', async () => {
  const state = { revision: 50 };
  const { compacted, compactor } = compactorOf({ mode: 'revision', retention: 100 }, state);
  await clock.advance(5 * minuteMs);
  state.revision = 250;
  await clock.advance(10 * minuteMs);
  expect(compacted).toEqual([150]);
  compactor.stop();
  state.revision = 900;
  await clock.advance(10 * minuteMs);
  expect(compacted).toEqual([150]);
});

test('periodic mode keeps the history within the retention', async () => {
  const state = { revision: 1 };
  const { compacted, compactor } = compactorOf({ mode: 'periodic', retentionMs: 10 * minuteMs }, state);
  for (let minute = 1; minute <= 25; minute += 1) {
    state.revision = minute;
    await clock.advance(minuteMs);
  }
  expect(compacted.length).toBeGreaterThan(0);
  for (const revision of compacted) expect(revision).toBeLessThanOrEqual(25 - 10);
  compactor.stop();
});

test('a compaction that the log rejects is retried', async () => {
  const state = { revision: 250, refusing: true };
  const { compacted, compactor } = compactorOf({ mode: 'revision', retention: 100 }, state);
  await clock.advance(5 * minuteMs);
  state.refusing = false;
  await clock.advance(5 * minuteMs);
  expect(compacted).toEqual([150]);
  compactor.stop();
});

describe('by default', () => {
  const quotaBytes = 4 * 1024 * 1024;

  test('endless acquiring and releasing keeps the newer part of the history, within its share', async () => {
    const history = new BusyHistory({ quotaBytes, cyclesPerSecond: 1_000 });
    let mostBytes = 0;
    let leastRevisions = Infinity;
    for (let second = 1; second <= 60; second += 1) {
      await history.nextSecond();
      mostBytes = Math.max(mostBytes, history.state.sizeBytes);
      const { currentRevision, compactRevision } = history.state;
      if (compactRevision > 0) leastRevisions = Math.min(leastRevisions, currentRevision - compactRevision);
    }
    history.stop();
    // One more second of history accumulates until the next check.
    expect(mostBytes).toBeLessThan(quotaBytes / 2);
    expect(history.compactions).toBeGreaterThan(5);
    // The writes of the last half second are present at every check.
    expect(leastRevisions).toBeGreaterThanOrEqual(1_000);
  });

  test('a small history is kept for an hour', async () => {
    const history = new BusyHistory({ quotaBytes, cyclesPerSecond: 0 });
    history.cycle(100);
    const written = history.state.currentRevision;
    await history.clock.advance(60 * minuteMs);
    expect(history.state.compactRevision).toBeLessThan(1);
    history.cycle(1);
    await history.clock.advance(61 * minuteMs);
    history.stop();
    expect(history.state.compactRevision).toBe(written);
  });

  test('compaction waits for a lagging watch until the history takes twice its share', async () => {
    const wanted = 50;
    const history = new BusyHistory({ quotaBytes, cyclesPerSecond: 200, oldestWatched: () => wanted });
    let waitedUntilBytes = 0;
    while (history.state.compactRevision <= wanted) {
      waitedUntilBytes = history.state.sizeBytes - history.state.sizeInUseBytes;
      await history.nextSecond();
      expect(history.state.compactRevision === wanted || waitedUntilBytes < quotaBytes).toBe(true);
      if (waitedUntilBytes > quotaBytes) break;
    }
    history.stop();
    expect(waitedUntilBytes).toBeGreaterThan(quotaBytes / 4);
    expect(waitedUntilBytes).toBeLessThan((quotaBytes * 3) / 4);
  });

  test('when live keys take most of the quota, the history shrinks to the rest', async () => {
    const history = new BusyHistory({ quotaBytes, cyclesPerSecond: 100 });
    history.fill(0.75);
    for (let second = 1; second <= 60; second += 1) await history.nextSecond();
    history.stop();
    expect(history.state.sizeBytes).toBeLessThan(0.9 * quotaBytes);
  });

  test('nothing is compacted while garbage collection is pending, as during a snapshot', async () => {
    const history = new BusyHistory({ quotaBytes, cyclesPerSecond: 1_000 });
    while (history.compactions === 0) await history.nextSecond();
    const snapshot = history.state.snapshot();
    for (let second = 1; second <= 20; second += 1) await history.nextSecond();
    const before = history.compactions;
    expect(before).toBeLessThanOrEqual(2);
    snapshot.return();
    for (let second = 1; second <= 10; second += 1) await history.nextSecond();
    history.stop();
    expect(history.compactions).toBeGreaterThan(before);
    expect(history.state.sizeBytes).toBeLessThan(quotaBytes / 2);
  });
});
