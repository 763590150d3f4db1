import { expect } from 'vitest';
import { runSeeds } from './run-seeds.ts';

/** `SIMULATION_SEED` and `SIMULATION_SEEDS` run others, or more of them. */
const firstSeed = Number(process.env['SIMULATION_SEED'] ?? 100_000);
const seedCount = Number(process.env['SIMULATION_SEEDS'] ?? 100_000);

/** Runs one half of the seeds of the long tests: two files share them, so that two processes do. */
export async function runHalf(half: 'even' | 'odd'): Promise<void> {
  const { seeds, failures, counts } = await runSeeds(seedsOf(half));
  console.log(`${seeds} ${half} seeds from ${firstSeed} on: ${JSON.stringify(counts)}`);
  expect(failures).toEqual([]);
  expect(seeds).toBe(Math.floor(seedCount / 2));
}

function* seedsOf(half: 'even' | 'odd'): Generator<number> {
  const first = firstSeed + (half === 'even' ? firstSeed % 2 : 1 - (firstSeed % 2));
  for (let seed = first; seed < first + 2 * Math.floor(seedCount / 2); seed += 2) yield seed;
}
