import { type Command, type CommandResponse, StateMachine } from '@tenure/core';
import { expect, test } from 'vitest';
import { BackgroundMaintenance } from './background-maintenance.ts';
import { VirtualClock } from '@tenure/test-support';

const clock = new VirtualClock();

const put = { key: 'k', value: 'x'.repeat(1_000), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };

/** The maintenance of a server whose history takes far more than its share. */
function overfull(policy: { readonly mode: 'bounded'; readonly retentionMs: number } | undefined) {
  const state = new StateMachine();
  const apply = (command: Command): CommandResponse => {
    const entry = { index: state.appliedIndex + 1, epoch: 1, timeMs: 0, commands: [command] };
    return state.apply(entry).responses[0]!;
  };
  apply({ kind: 'claim', epoch: 1, leader: '', leaderLeaseMs: 0 });
  apply({ kind: 'alarm', action: 'activate', memberId: 1n, alarm: 'nospace' });
  apply({ kind: 'alarm', action: 'deactivate', memberId: 1n, alarm: 'nospace' });
  for (let puts = 0; puts < 200; puts += 1) apply({ kind: 'put', put });
  const server = { leads: false, compacted: [] as number[] };
  const maintenance = new BackgroundMaintenance({
    clock,
    policy,
    quotaBytes: 100_000,
    memberId: 1n,
    state: () => state,
    oldestWatched: () => undefined,
    isRaisedHere: () => true,
    speaksFor: () => false,
    leads: () => server.leads,
    propose: async (command) => apply(command),
    onCompacted: (revision) => server.compacted.push(revision),
  });
  return { server, maintenance };
}

test('only the leader compacts', async () => {
  const { server, maintenance } = overfull({ mode: 'bounded', retentionMs: 3_600_000 });
  await clock.advance(5_000);
  expect(server.compacted).toEqual([]);
  server.leads = true;
  await clock.advance(1_000);
  expect(server.compacted).toHaveLength(1);
  maintenance.stop();
});

test('without a policy nothing is compacted, as in etcd', async () => {
  const { server, maintenance } = overfull(undefined);
  server.leads = true;
  await clock.advance(3_600_000);
  expect(server.compacted).toEqual([]);
  expect(clock.timers).toBe(0);
  maintenance.stop();
});
