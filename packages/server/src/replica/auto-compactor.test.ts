import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { AutoCompaction } from '../config/auto-compaction.ts';
import { AutoCompactor } from './auto-compactor.ts';

const minuteMs = 60_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function compactorOf(
  policy: AutoCompaction,
  state: { revision: number; refusing?: boolean },
): {
  compacted: number[];
  compactor: AutoCompactor;
} {
  const compacted: number[] = [];
  const compactor = new AutoCompactor({
    policy,
    currentRevision: () => state.revision,
    compact: (revision) => {
      if (state.refusing === true) return Promise.reject(new Error('the log refuses'));
      compacted.push(revision);
      return Promise.resolve();
    },
  });
  return { compacted, compactor };
}

test('in revision mode the last revisions are kept, looked at every five minutes', async () => {
  const state = { revision: 50 };
  const { compacted, compactor } = compactorOf({ mode: 'revision', retention: 100 }, state);
  await vi.advanceTimersByTimeAsync(5 * minuteMs);
  state.revision = 250;
  await vi.advanceTimersByTimeAsync(10 * minuteMs);
  expect(compacted).toEqual([150]);
  compactor.stop();
  state.revision = 900;
  await vi.advanceTimersByTimeAsync(10 * minuteMs);
  expect(compacted).toEqual([150]);
});

test('in periodic mode what is younger than the retention is kept', async () => {
  const state = { revision: 1 };
  const { compacted, compactor } = compactorOf({ mode: 'periodic', retentionMs: 10 * minuteMs }, state);
  for (let minute = 1; minute <= 25; minute += 1) {
    state.revision = minute;
    await vi.advanceTimersByTimeAsync(minuteMs);
  }
  expect(compacted.length).toBeGreaterThan(0);
  for (const revision of compacted) expect(revision).toBeLessThanOrEqual(25 - 10);
  compactor.stop();
});

test('a compaction that the log refuses ends nothing, and is tried again', async () => {
  const state = { revision: 250, refusing: true };
  const { compacted, compactor } = compactorOf({ mode: 'revision', retention: 100 }, state);
  await vi.advanceTimersByTimeAsync(5 * minuteMs);
  state.refusing = false;
  await vi.advanceTimersByTimeAsync(5 * minuteMs);
  expect(compacted).toEqual([150]);
  compactor.stop();
});
