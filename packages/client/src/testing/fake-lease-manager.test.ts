import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LeaseLostError } from '../errors/lease-lost-error.ts';
import { loadBalanced } from '../load-balanced.ts';
import type { Hold } from '../leases/hold.ts';
import { FakeLeaseManager, FakeMembership } from './index.ts';

const reasonOf = (hold: Hold): string | undefined =>
  hold.signal.reason instanceof LeaseLostError ? hold.signal.reason.reason : undefined;

describe('FakeLeaseManager', () => {
  test('what is held elsewhere is not to be had, until it is marked as held here', async () => {
    await using leases = new FakeLeaseManager();
    await leases.markHeldElsewhere('job', 'pod-2');
    assert.equal(await leases.tryAcquire('job'), null);
    assert.equal((await leases.inspect('job'))?.holder, 'pod-2');
    const handle = leases.requestLease('job');
    assert.equal(handle.isHeld(), false);
    const hold = await leases.markHeld('job');
    assert.ok(handle.isHeld() && handle.hold === hold && hold.isHeld());
    assert.equal(await leases.markHeld('job'), hold);
  });

  test('a hold that is taken away, or expires, is lost at once and says why', async () => {
    await using leases = new FakeLeaseManager();
    const lost: string[] = [];
    leases.addListener({ afterLoss: (hold, { reason }) => lost.push(`${hold.name} ${reason}`) });
    const first = await leases.acquire('job');
    await leases.markHeldElsewhere('job');
    assert.deepEqual([first.isHeld(), reasonOf(first)], [false, 'stolen']);
    await leases.expire('job');
    const second = await leases.acquire('job');
    assert.ok(second.fencingToken > first.fencingToken);
    const waiting = leases.acquire('job');
    await leases.expire('job');
    assert.equal(reasonOf(second), 'expired');
    assert.equal((await waiting).isHeld(), true);
    assert.deepEqual(lost, ['job stolen', 'job expired']);
  });

  test('behind a partition holds are lost as time passes, and it goes on when that heals', async () => {
    await using leases = new FakeLeaseManager({ ttlMs: 10_000 });
    const hold = await leases.acquire('job');
    const heal = leases.partition();
    await leases.clock.advance(5000);
    assert.equal(hold.isHeld(), true);
    await leases.clock.advance(5000);
    assert.deepEqual([hold.isHeld(), reasonOf(hold)], [false, 'unreachable']);
    heal();
    const next = leases.acquire('job');
    await leases.clock.advance(10_000);
    assert.equal((await next).isHeld(), true);
  });
});

describe('FakeMembership', () => {
  test('members and owners are what the test says, and watches see each change', async () => {
    await using group = new FakeMembership({ id: 'a' });
    assert.ok(group.isMember() && group.owns('anything'));
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
    assert.deepEqual([group.owner('shard-1').id, group.owns('shard-1')], ['b', false]);
    group.setMembers('b');
    assert.equal(group.isMember(), false);
    await new Promise((resolve) => setImmediate(resolve));
    stop.abort(new Error('enough'));
    await assert.rejects(watching, { message: 'enough' });
    assert.deepEqual(seen.filter(Boolean), ['+b', '-a']);
    const iterator = group.watch()[Symbol.asyncIterator]();
    await iterator.next();
    const pending = iterator.next();
    await iterator.return!();
    assert.equal((await pending).done, true);
    // Like any other it says no where nobody owns anything, and throws nothing.
    group.setMembers({ ...group.self, weight: 0 });
    assert.deepEqual([group.isMember(), group.owns('shard-1')], [true, false]);
    group.setMembers();
    assert.throws(() => group.owner('shard-1'), { name: 'NoMembersError' });
  });

  test('together they show what code does whose work is moved to another member', async () => {
    await using leases = new FakeLeaseManager();
    await using group = new FakeMembership({ id: 'a' });
    await using balanced = loadBalanced(leases, group);
    const handle = balanced.requestLease('shard-1');
    const hold = await handle.acquire();
    assert.ok(hold !== null && handle.isHeld() && handle.shouldHold());
    group.setMembers('a', 'b');
    group.assign('shard-1', 'b');
    await leases.clock.advance(0);
    assert.deepEqual([handle.isHeld(), handle.shouldHold(), hold.signal.aborted], [false, false, true]);
    assert.equal(await handle.acquire(), null);
  });
});
