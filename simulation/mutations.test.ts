import { describe, expect, inject, test } from 'vitest';
import { followerIndexAlone, mutations } from './mutations.ts';
import { runSeeds, seedsFrom } from './run-seeds.ts';
import { simulate } from './simulate.ts';

const effort = inject('effort');
/** Before each commit from a seed that is known to notice; else in a wide search that knows of none. */
const seeds = { commit: 20, ci: 3_000, soak: 20_000 }[effort];
const seedsOfGuards = { commit: 100, ci: 500, soak: 20_000 }[effort];
const timeout = 1_800_000;

describe('the simulation notices when', () => {
  test.each(mutations)('$name', { timeout }, async ({ name, rule, foundAt, omissions, apply }) => {
    const from = effort === 'commit' ? foundAt : 1;
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
describe('of the guards of a renewal against a leader that knows less', { timeout }, () => {
  test('what the follower has applied suffices for clients that stay with one server', async () => {
    const { failures } = await runSeeds(seedsFrom(1, seedsOfGuards), followerIndexAlone);
    expect(failures).toEqual([]);
  });

  test('the append that is out suffices for all', async () => {
    const { failures } = await runSeeds(seedsFrom(1, seedsOfGuards), { followerIndex: true });
    expect(failures).toEqual([]);
  });
});
