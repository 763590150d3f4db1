import { type Command, type CommandResponse, StateMachine } from '@tenure/core';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Upkeep } from './upkeep.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const put = { key: 'k', value: 'x'.repeat(1_000), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };

/** The upkeep of a server whose history takes far more than its share. */
function overfull(policy: { readonly mode: 'bounded'; readonly retentionMs: number } | undefined) {
  const state = new StateMachine();
  const apply = (command: Command): CommandResponse => {
    const entry = { index: state.appliedIndex + 1, epoch: 1, timeMs: 0, commands: [command] };
    return state.apply(entry).responses[0]!;
  };
  apply({ kind: 'claim', epoch: 1, leader: '', rightMs: 0 });
  apply({ kind: 'alarm', action: 'activate', memberId: 1n, alarm: 'nospace' });
  apply({ kind: 'alarm', action: 'deactivate', memberId: 1n, alarm: 'nospace' });
  for (let puts = 0; puts < 200; puts += 1) apply({ kind: 'put', put });
  const server = { leads: false, compacted: [] as number[] };
  const upkeep = new Upkeep({
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
  return { server, upkeep };
}

test('of several servers the one that leads compacts', async () => {
  const { server, upkeep } = overfull({ mode: 'bounded', retentionMs: 3_600_000 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(server.compacted).toEqual([]);
  server.leads = true;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(server.compacted).toHaveLength(1);
  upkeep.stop();
});

test('without a policy nothing is done, as with etcd', async () => {
  const { server, upkeep } = overfull(undefined);
  server.leads = true;
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(server.compacted).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
  upkeep.stop();
});
