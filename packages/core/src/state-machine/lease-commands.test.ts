import { describe, expect, test } from 'vitest';
import { applyNext, deleteRange, grant, put, keysOf } from '../testing/requests.ts';
import type { Command } from './command.ts';
import { StateMachine } from './state-machine.ts';

const claim = (epoch: number): Command => ({ kind: 'claim', epoch, leader: `leader ${epoch}`, leaderLeaseMs: 800 });
const revoke = (id: bigint): Command => ({ kind: 'leaseRevoke', id });
const refused = (code: string): unknown => ({ kind: 'error', code });

function led(...commands: Command[]): StateMachine {
  const state = new StateMachine();
  applyNext(state, claim(1));
  applyNext(state, ...commands);
  return state;
}

describe('a grant', () => {
  test('requires an unused id and a TTL within the maximum, and creates no revision', () => {
    const state = led(grant(-5n, 9e12, 'job'), grant(1n, 9e12 + 1), grant(-5n), grant(-5n, 9e12 + 1));
    expect(state.currentRevision).toBe(1);
    expect(state.leaseCount).toBe(1);
    expect(state.lease(-5n)).toEqual({
      id: -5n,
      ttlMs: 9e12,
      label: 'job',
      renewIndex: 2,
      liveEpoch: 1,
      deadlineMs: undefined,
    });
    const again = applyNext(state, grant(1n, 9e12 + 1), grant(-5n), grant(-5n, 9e12 + 1)).responses;
    expect(again).toEqual([refused('LeaseTtlTooLarge'), refused('LeaseExists'), refused('LeaseTtlTooLarge')]);
  });
});

describe('the end of a lease', () => {
  test('deletes all its keys at one revision, in order, except keys attached to another lease since', () => {
    const keys = ['c', 'a', 'd', 'b', 'e'].map((key) => put(key, key, { lease: 1n }));
    const state = led(grant(1n), grant(2n), ...keys, put('d', 'moved', { lease: 2n }), put('e', 'free'));
    const applied = applyNext(state, revoke(1n));
    expect(applied.lastRevision).toBe(applied.firstRevision);
    const events = state.history.eventsAt(applied.lastRevision);
    expect(events.map(({ type, kv, prevKv }) => [type, kv.key, kv.lease, prevKv?.lease])).toEqual([
      ['delete', 'a', 0n, 1n],
      ['delete', 'b', 0n, 1n],
      ['delete', 'c', 0n, 1n],
    ]);
    expect(applied.leaseChanges).toEqual([{ kind: 'removed', id: 1n, cause: 'revoked' }]);
    expect([state.keyCount, state.lease(1n), keysOf(state, 2n)]).toEqual([2, undefined, ['d']]);
  });

  test('creates no revision without keys, and is refused the second time', () => {
    const state = led(grant(1n), put('a', '', { lease: 1n }), deleteRange('a'));
    const before = state.currentRevision;
    const applied = applyNext(state, revoke(1n), revoke(1n));
    expect(applied.responses).toEqual([{ kind: 'leaseRevoke', revision: before }, refused('LeaseNotFound')]);
    expect(state.currentRevision).toBe(before);
  });

  test('by expiry creates one revision per lease, and only if the renewIndex matches', () => {
    const state = led(grant(1n), grant(2n), grant(3n), put('a', '', { lease: 1n }), put('b', '', { lease: 2n }));
    const renewIndex = state.lease(1n)!.renewIndex;
    const leases = [
      { id: 2n, renewIndex: renewIndex - 1 },
      { id: 3n, renewIndex },
      { id: 1n, renewIndex },
      { id: 1n, renewIndex },
      { id: 9n, renewIndex },
    ];
    const applied = applyNext(state, { kind: 'expireLeases', leases });
    expect(applied.responses).toEqual([{ kind: 'expireLeases', revision: 4, expired: [3n, 1n] }]);
    expect([applied.firstRevision, applied.lastRevision]).toEqual([4, 4]);
    expect(applied.leaseChanges).toEqual([
      { kind: 'removed', id: 3n, cause: 'expired' },
      { kind: 'removed', id: 1n, cause: 'expired' },
    ]);
    expect([...state.leases()].map(({ id }) => id)).toEqual([2n]);
  });

  test('does not affect a lease granted again under the same id', () => {
    const state = led(grant(1n));
    const renewIndex = state.lease(1n)!.renewIndex;
    applyNext(state, revoke(1n), grant(1n));
    applyNext(state, { kind: 'expireLeases', leases: [{ id: 1n, renewIndex }] });
    applyNext(state, { kind: 'checkpointLeases', leases: [{ id: 1n, renewIndex, deadlineMs: 1 }] });
    expect(state.lease(1n)).toMatchObject({ renewIndex: renewIndex + 1, deadlineMs: undefined });
  });
});

describe('dates', () => {
  test('are set by a checkpoint of a lease with an in-memory deadline, once', () => {
    const state = led(grant(1n, 5000));
    const lease = state.lease(1n)!;
    expect(state.deadlineOf(lease)).toBeUndefined();
    const checkpoint = (deadlineMs: number): Command => {
      return { kind: 'checkpointLeases', leases: [{ id: 1n, renewIndex: lease.renewIndex, deadlineMs }] };
    };
    const applied = applyNext(state, checkpoint(4000), checkpoint(3000));
    const checkpointed = { ...lease, deadlineMs: 4000 };
    expect(applied.leaseChanges).toEqual([{ kind: 'checkpointed', lease: checkpointed }]);
    expect(state.deadlineOf(state.lease(1n)!)).toBe(4000);
    // A checkpoint leaves renewIndex unchanged, so that the following expiry still matches.
    expect(state.lease(1n)).toEqual(checkpointed);
  });

  test('are set for every lease with an in-memory deadline by a change of leader, from the end of the epoch', () => {
    const state = led(grant(1n, 5000), grant(2n, 7000));
    state.apply({ index: 3, epoch: 1, timeMs: 1000, commands: [{ kind: 'renewLeases', ids: [1n] }] });
    state.apply({ index: 4, epoch: 2, timeMs: 3000, commands: [claim(2)] });
    const deadlines = (): unknown[] => [...state.leases()].map((lease) => state.deadlineOf(lease));
    expect(deadlines()).toEqual([8000, 10_000]);
    // Further changes of leader do not move them.
    state.apply({ index: 5, epoch: 3, timeMs: 6000, commands: [claim(3)] });
    expect(deadlines()).toEqual([8000, 10_000]);
    // Nor does a checkpoint: such a lease is already checkpointed.
    applyNext(state, { kind: 'checkpointLeases', leases: [{ id: 1n, renewIndex: 2, deadlineMs: 99_999 }] });
    expect(deadlines()).toEqual([8000, 10_000]);
  });

  test('are removed by a renewal, which restarts the TTL and invalidates a proposed expiry', () => {
    const state = led(grant(1n, 5000), grant(2n, 5000));
    applyNext(state, { kind: 'checkpointLeases', leases: [{ id: 1n, renewIndex: 2, deadlineMs: 10 }] });
    applyNext(state, claim(2));
    const applied = applyNext(state, { kind: 'renewLeases', ids: [2n, 9n, 1n] });
    const renewed = (id: bigint): unknown => ({
      kind: 'renewed',
      lease: { id, ttlMs: 5000, label: '', renewIndex: 5, liveEpoch: 2, deadlineMs: undefined },
    });
    expect(applied.responses).toEqual([{ kind: 'renewLeases', revision: 1, renewed: [2n, 1n] }]);
    expect(applied.leaseChanges).toEqual([renewed(2n), renewed(1n)]);
    const late = applyNext(state, { kind: 'expireLeases', leases: [{ id: 1n, renewIndex: 2 }] });
    expect(late.responses).toMatchObject([{ expired: [] }]);
    // The deadline is already in memory: nothing to do, and the renewIndex stays.
    const again = applyNext(state, { kind: 'renewLeases', ids: [1n] });
    expect(again.leaseChanges).toEqual([]);
    expect(again.responses).toMatchObject([{ renewed: [1n] }]);
    expect(state.lease(1n)?.renewIndex).toBe(5);
  });
});

describe('the listing of leases', () => {
  test('is ordered by id and is unaffected by later changes', () => {
    const state = led(grant(5n), grant(-2n), grant(2n ** 62n), grant(7n));
    const listing = state.leases();
    expect(listing.next().value?.id).toBe(-2n);
    applyNext(state, revoke(5n), grant(6n));
    expect([...listing].map(({ id }) => id)).toEqual([5n, 7n, 2n ** 62n]);
  });
});
