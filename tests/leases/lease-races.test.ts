import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { calm, Contention, stormy } from './contention.ts';

describe('many processes that contend for leases and locks in virtual time', () => {
  test.each([
    { how: 'on a good network', rates: calm, trouble: false, runs: 4 },
    {
      how: 'with lost requests, lost answers and hints, stops, cuts and stepped clocks',
      rates: stormy,
      trouble: true,
      runs: 10,
    },
  ])(
    'never hold one lease twice, $how',
    async ({ rates, trouble, runs }) => {
      let grants = 0;
      let losses = 0;
      await fc.assert(
        fc.asyncProperty(fc.integer(), async (seed) => {
          const contention = new Contention(seed, rates);
          await contention.run({ trouble });
          grants += contention.grants;
          losses += contention.losses;
        }),
        { numRuns: runs, endOnFailure: true },
      );
      expect(grants, `only ${grants} grants`).toBeGreaterThan(runs * 25);
      expect(!trouble || losses > runs / 2, `only ${losses} losses`).toBe(true);
    },
    120_000,
  );
});
