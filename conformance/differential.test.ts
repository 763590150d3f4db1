import { describe, expect, inject, test } from 'vitest';
import { failedSeeds } from './differential/failed-seeds.ts';
import { expectSameHistories, patienceMs } from './differential/side-by-side.ts';
import { etcdVersion } from './servers/etcd-server.ts';

const effort = inject('effort');
const runs = { commit: 50, ci: 600, soak: 20_000 }[effort];

if (etcdVersion() !== undefined) {
  describe('etcd and Tenure side by side', () => {
    const known = failedSeeds.map((each) => [`seed ${each.seed}, which once found ${each.found}`, each] as const);
    test.for(known)('answer alike to %s', { timeout: patienceMs(runs) }, ([, { seed, runs: needed }]) =>
      expectSameHistories({ seed, runs: needed, effort }),
    );

    test('answer every call of a random history alike, and show its events alike', { timeout: patienceMs(runs) }, () =>
      expectSameHistories({ seed: inject('seed'), runs, effort }),
    );
  });
} else {
  describe('etcd and Tenure side by side', () => {
    test('needs the program etcd (Debian package etcd-server)', ({ skip }) => {
      expect(process.env['CI'], 'CI must have etcd').toBeUndefined();
      skip('etcd is not installed');
    });
  });
}
