import { describe, expect, inject, test } from 'vitest';
import { expectAllHappened, runSeeds, seedsFrom } from './run-seeds.ts';
import { simulate } from './simulate.ts';

/** `SIMULATION_SEED=n` runs that one alone. */
const wanted = process.env['SIMULATION_SEED'];
const seedCount = { commit: 200, ci: 300, soak: 300 }[inject('effort')];

/**
 * Seeds that have found something. 1490 and 1547: a leader that had handed on the lead acknowledged renewals while the
 * log had not answered yet. 2187 and 2892: a server to which the lead was handed claimed at once, although another had
 * claimed before it read of it.
 */
const regressions = [1_490, 1_547, 2_187, 2_892];

describe('leadership, cluster time and leases under faults', { timeout: 120_000 }, () => {
  test('keep every invariant in every seed', async () => {
    const seeds = wanted === undefined ? seedsFrom(1, seedCount) : [Number(wanted)];
    const { failures, counts } = await runSeeds(seeds);
    expect(failures).toEqual([]);
    if (wanted === undefined) expectAllHappened(counts);
  });

  test('keep them in the seeds that once found a fault', async () => {
    const { failures } = await runSeeds(regressions);
    expect(failures).toEqual([]);
  });

  test('run the same way each time from the same seed, and another way from another', async () => {
    const hashes = new Set<number>();
    for (let seed = 1; seed <= 10; seed += 1) {
      const first = await simulate(seed);
      expect(await simulate(seed)).toEqual(first);
      hashes.add(first.traceHash);
    }
    expect(hashes.size).toBe(10);
  });
});
