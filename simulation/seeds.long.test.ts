import { expect, inject, test } from 'vitest';
import { expectAllHappened, runSeeds } from './run-seeds.ts';

const isSoak = inject('effort') === 'soak';
/** As many in each turn of a soak: fifty turns are a million. */
const seedCount = 20_000;
/** A slow machine runs fewer seeds in CI, and says how many. */
const ciTimeLimitMs = 240_000;
const testTimeLimitMs = 7_200_000;

/** CI begins behind the seeds that are run before each commit, a soak somewhere else each time. */
const firstSeed = isSoak ? inject('seed') : 100_000;

test(
  'leadership, cluster time and leases keep every invariant in every seed',
  { timeout: testTimeLimitMs },
  async () => {
    const { seeds, failures, counts } = await runSeeds(seedsWithin(isSoak ? testTimeLimitMs : ciTimeLimitMs));
    console.log(`${seeds} seeds from ${firstSeed} on: ${JSON.stringify(counts)}`);
    expect(failures).toEqual([]);
    expectAllHappened(counts);
  },
);

function* seedsWithin(limitMs: number): Generator<number> {
  const endMs = performance.now() + limitMs;
  for (let seed = firstSeed; seed < firstSeed + seedCount && performance.now() < endMs; seed += 1) yield seed;
}
