import { afterEach, expect, inject, test, vi } from 'vitest';
import { runSeeds, seedsFrom } from './run-seeds.ts';
import { simulate } from './simulate.ts';

/** The first of those that CI runs by `npm run simulate`. */
const seedCount = { commit: 80, ci: 300, soak: 300 }[inject('effort')];

afterEach(() => void vi.useRealTimers());

test('servers, the library and a disk keep every rule under faults, for every seed', { timeout: 300_000 }, async () => {
  const { failures } = await runSeeds(seedsFrom(1, seedCount));
  expect(failures).toEqual([]);
});

test('a seed needs no real time, timers or wall clock', { timeout: 300_000 }, async () => {
  const expected = await Promise.all([1, 2, 3, 4].map((seed) => simulate(seed)));
  vi.useFakeTimers();
  for (const report of expected) expect(await simulate(report.seed)).toEqual(report);
  expect(vi.getTimerCount()).toBe(0);
});
