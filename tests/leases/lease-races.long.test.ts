import fc from 'fast-check';
import { describe, inject, test } from 'vitest';
import { calm, Contention, stormy } from './contention.ts';

/** All seeds are for the soak; CI has a tenth of them. */
const share = inject('effort') === 'soak' ? 1 : 0.1;

describe('many more seeds of processes that contend for leases and locks in virtual time', () => {
  test.each([
    { how: 'on a good network', rates: calm, trouble: false, processes: 6, runs: 40 },
    { how: 'while everything goes wrong', rates: stormy, trouble: true, processes: 3, runs: 400 },
    { how: 'while everything goes wrong, in a crowd', rates: stormy, trouble: true, processes: 8, runs: 40 },
  ])('never hold one twice, $how', async ({ rates, trouble, processes, runs }) => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        await new Contention(seed, rates, processes).run({ trouble });
      }),
      { numRuns: Math.ceil(runs * share), endOnFailure: true },
    );
  });
});
