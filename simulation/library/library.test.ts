import { expect, inject, test } from 'vitest';
import { libraryScenarioOf } from './library-scenario.ts';
import { simulateLibrary } from './simulate-library.ts';

/** Every fourth seed of `npm run simulate` is one of the library's; these show each backend by itself. */
const seedCount = { commit: 100, ci: 400, soak: 20_000 }[inject('effort')];
const timeout = 1_800_000;

/** A coincidence that never happened was not tested. */
const coincidences = [
  'a hold was lost',
  'a cancelled call',
  'a process resumed after the deadline of its hold',
  'granted exclusive',
  'granted shared',
  'granted permit',
];
const ofMemory = [
  'a renewal answered after the deadline',
  'tokens rejected by the resource',
  'enter lost after it was done',
  'late answer to enter',
  'late answer to renew',
  'leave lost after it was done',
];

test.each([
  { backend: 'memory', seeds: seedCount, expected: [...coincidences, ...ofMemory] },
  { backend: 'etcd', seeds: seedCount / 4, expected: coincidences },
] as const)('the library keeps its rules on its $backend backend', { timeout }, async (run) => {
  const { backend, seeds, expected } = run;
  const totals = new Map<string, number>();
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { violations, counts } = await simulateLibrary(libraryScenarioOf(seed, backend));
    expect(violations, `seed ${seed}`).toEqual([]);
    for (const [what, count] of Object.entries(counts)) totals.set(what, (totals.get(what) ?? 0) + count);
  }
  for (const what of expected) expect(totals.get(`library: ${what}`) ?? 0, what).toBeGreaterThan(0);
});
