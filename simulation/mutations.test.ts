import { describe, expect, it } from 'vitest';
import { followerIndexAlone, mutations } from './mutations.ts';
import { runSeeds, seedsFrom } from './run-seeds.ts';
import { simulate } from './simulate.ts';

describe('the simulation notices when', () => {
  it.each(mutations)('$name', { timeout: 120_000 }, async ({ name, rule, from = 1, seeds, omissions, apply }) => {
    const repair = apply?.();
    try {
      let found: string | undefined;
      let tried = 0;
      while (found === undefined && tried < seeds) {
        const { violations } = await simulate(from + tried, omissions);
        found = violations.find((violation) => violation.startsWith(`${rule} `));
        tried += 1;
      }
      expect(found, `no violation of ${rule} within ${seeds} seeds`).toBeDefined();
      console.log(`${name}: after ${tried} seeds, ${found}`);
    } finally {
      repair?.();
    }
  });
});

/** The other half of decision 013: each of the two guards keeps the rules where it stands alone. */
describe('of the guards of a renewal against a leader that knows less', { timeout: 120_000 }, () => {
  it('what the follower has applied suffices for clients that stay with one server', async () => {
    const { failures } = await runSeeds(seedsFrom(1, 500), followerIndexAlone);
    expect(failures).toEqual([]);
  });

  it('the append that is out suffices for all', async () => {
    const { failures } = await runSeeds(seedsFrom(1, 500), { followerIndex: true });
    expect(failures).toEqual([]);
  });
});
