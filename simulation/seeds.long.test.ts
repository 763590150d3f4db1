import { expect, inject, it } from 'vitest';
import { expectAllHappened, runSeeds } from './run-seeds.ts';

const effort = inject('effort');
const seedCount = { commit: 300, ci: 20_000, soak: 1_000_000 }[effort];
/** A slow machine runs fewer seeds, and says how many. */
const ciTimeLimitMs = 240_000;
const minuteMs = 60_000;
/** The longest that a test may take, beyond what it gives itself. */
const testTimeLimitMs = 48 * 60 * minuteMs;

/** Where CI begins: behind the seeds that are run before each commit. A soak begins somewhere else each time. */
const ciFirstSeed = 100_000;
const givenFirstSeed = process.env['TENURE_SIMULATION_FIRST_SEED'];
const firstSeed = Number(givenFirstSeed ?? (effort === 'soak' ? Math.abs(inject('seed')) : ciFirstSeed));

it('leadership, cluster time and leases keep every invariant in every seed', { timeout: testTimeLimitMs }, async () => {
  const { seeds, failures, counts } = await runSeeds(seedsWithin(timeLimitMs()));
  const next = firstSeed + seeds;
  console.log(`${seeds} seeds from ${firstSeed} on: ${JSON.stringify(counts)}`);
  console.log(`the next run goes on from there with TENURE_SIMULATION_FIRST_SEED=${next}`);
  expect(failures).toEqual([]);
  expectAllHappened(counts);
});

function timeLimitMs(): number {
  if (effort !== 'soak') return ciTimeLimitMs;
  const minutes = process.env['TENURE_SOAK_MINUTES'];
  if (minutes === undefined) return Infinity;
  if (!(Number(minutes) > 0)) throw new Error(`TENURE_SOAK_MINUTES is a number of minutes, not ${minutes}`);
  return Number(minutes) * minuteMs;
}

function* seedsWithin(limitMs: number): Generator<number> {
  if (!Number.isSafeInteger(firstSeed))
    throw new Error(`TENURE_SIMULATION_FIRST_SEED is a seed, not ${givenFirstSeed}`);
  const endMs = performance.now() + limitMs;
  for (let seed = firstSeed; seed < firstSeed + seedCount && performance.now() < endMs; seed += 1) yield seed;
}
