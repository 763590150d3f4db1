import { describe, expect, test } from 'vitest';
import { LeaseLostError } from '../errors/lease-lost-error.ts';
import { loadBalanced } from '../load-balanced.ts';
import type { Hold } from '../leases/hold.ts';
import { FakeLeaseManager, FakeMembership } from './index.ts';

const reasonOf = (hold: Hold): string | undefined =>
  hold.signal.reason instanceof LeaseLostError ? hold.signal.reason.reason : undefined;

describe('FakeLeaseManager', () => {
  test('a lease held elsewhere cannot be acquired until it is marked as held here', async () => {
    await using leases = new FakeLeaseManager();
    await leases.markHeldElsewhere('job', 'pod-2');
    expect(await leases.tryAcquire('job')).toBe(null);
    expect((await leases.inspect('job'))?.holder).toBe('pod-2');
    const handle = leases.requestLease('job');
    expect(handle.isHeld()).toBe(false);
    const hold = await leases.markHeld('job');
    expect(handle.isHeld()).toBe(true);
    expect(handle.hold).toBe(hold);
    expect(hold.isHeld()).toBe(true);
    expect(await leases.markHeld('job')).toBe(hold);
  });

  test('a hold that is stolen or expires is lost at once, with its reason', async () => {
    await using leases = new FakeLeaseManager();
    const lost: string[] = [];
    leases.addListener({ afterLoss: (hold, { reason }) => lost.push(`${hold.name} ${reason}`) });
    const first = await leases.acquire('job');
    await leases.markHeldElsewhere('job');
    expect([first.isHeld(), reasonOf(first)]).toEqual([false, 'stolen']);
    await leases.expire('job');
    const second = await leases.acquire('job');
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    const waiting = leases.acquire('job');
    await leases.expire('job');
    expect(reasonOf(second)).toBe('expired');
    expect((await waiting).isHeld()).toBe(true);
    expect(lost).toEqual(['job stolen', 'job expired']);
  });

  test('in a partition holds are lost as time passes, and the manager works again when it heals', async () => {
    await using leases = new FakeLeaseManager({ ttlMs: 10_000 });
    const hold = await leases.acquire('job');
    const heal = leases.partition();
    await leases.clock.advance(5000);
    expect(hold.isHeld()).toBe(true);
    await leases.clock.advance(5000);
    expect([hold.isHeld(), reasonOf(hold)]).toEqual([false, 'unreachable']);
    heal();
    const next = leases.acquire('job');
    await leases.clock.advance(10_000);
    expect((await next).isHeld()).toBe(true);
  });
});

describe('FakeMembership', () => {
  test('members and owners are set by the test, and watches see each change', async () => {
    await using group = new FakeMembership({ id: 'a' });
    expect(group.isMember()).toBe(true);
    expect(group.owns('anything')).toBe(true);
    const seen: string[] = [];
    const stop = new AbortController();
    const watching = (async (): Promise<void> => {
      for await (const { added, removed } of group.watch({ signal: stop.signal })) {
        seen.push([...added.map(({ id }) => `+${id}`), ...removed.map(({ id }) => `-${id}`)].join(' '));
      }
    })();
    await new Promise((resolve) => setImmediate(resolve));
    group.setMembers('a', 'b');
    await new Promise((resolve) => setImmediate(resolve));
    group.assign('shard-1', 'b');
    expect([group.owner('shard-1').id, group.owns('shard-1')]).toEqual(['b', false]);
    group.setMembers('b');
    expect(group.isMember()).toBe(false);
    await new Promise((resolve) => setImmediate(resolve));
    stop.abort(new Error('enough'));
    await expect(watching).rejects.toMatchObject({ message: 'enough' });
    expect(seen.filter(Boolean)).toEqual(['+b', '-a']);
    const iterator = group.watch()[Symbol.asyncIterator]();
    await iterator.next();
    const pending = iterator.next();
    await iterator.return!();
    expect((await pending).done).toBe(true);
    // As with any membership, `owns` returns false without owners, and does not throw.
    group.setMembers({ ...group.self, weight: 0 });
    expect([group.isMember(), group.owns('shard-1')]).toEqual([true, false]);
    group.setMembers();
    expect(() => group.owner('shard-1')).toThrow(expect.objectContaining({ name: 'NoMembersError' }));
  });

  test('together they test code whose work moves to another member', async () => {
    await using leases = new FakeLeaseManager();
    await using group = new FakeMembership({ id: 'a' });
    await using balanced = loadBalanced(leases, group);
    const handle = balanced.requestLease('shard-1');
    const hold = await handle.acquire();
    expect(hold).not.toBe(null);
    expect(handle.isHeld()).toBe(true);
    expect(handle.shouldHold()).toBe(true);
    group.setMembers('a', 'b');
    group.assign('shard-1', 'b');
    await leases.clock.advance(0);
    expect([handle.isHeld(), handle.shouldHold(), hold!.signal.aborted]).toEqual([false, false, true]);
    expect(await handle.acquire()).toBe(null);
  });
});
