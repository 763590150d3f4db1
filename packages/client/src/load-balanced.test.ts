import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createLeaseManager } from './lease-manager.ts';
import { loadBalanced } from './load-balanced.ts';
import { memoryBackend } from './memory/memory-backend.ts';
import { FakeClock } from './testing/fake-clock.ts';

describe('leases that are shared out over members', () => {
  test('are held by the one that should, and follow when the members change', async () => {
    const clock = new FakeClock();
    const backend = memoryBackend({ clock });
    const join = async (holder: string) => {
      const manager = createLeaseManager({ backend, clock, holder });
      const membership = await manager.membership('workers');
      return { manager, membership, leases: loadBalanced(manager, membership) };
    };
    const one = await join('one');
    const names = Array.from({ length: 20 }, (_, at) => `shard-${at}`);
    const handles = names.map((name) => one.leases.requestLease(name));
    const holds = await Promise.all(handles.map((handle) => handle.acquire()));
    assert.ok(holds.every((hold) => hold?.isHeld()));

    const two = await join('two');
    await clock.advance(0);
    const moved = handles.filter((handle) => !handle.shouldHold());
    assert.ok(moved.length > 0 && moved.length < names.length);
    for (const [at, handle] of handles.entries()) {
      const isMoved = moved.includes(handle);
      assert.equal(handle.isHeld(), !isMoved);
      // Whoever works under it is told to stop.
      assert.equal(holds[at]!.signal.aborted, isMoved);
      assert.equal(await handle.acquire().then((hold) => hold === holds[at]), !isMoved);
      const there = two.leases.requestLease(handle.name);
      assert.equal(there.shouldHold(), isMoved);
      assert.equal((await there.acquire()) !== null, isMoved);
    }

    await two.manager[Symbol.asyncDispose]();
    await clock.advance(0);
    assert.ok(handles.every((handle) => handle.shouldHold()));
    assert.ok((await Promise.all(handles.map((handle) => handle.acquire()))).every((hold) => hold?.isHeld()));
    await one.leases[Symbol.asyncDispose]();
    assert.ok(handles.every((handle) => !handle.isHeld()));
    assert.ok((await one.manager.tryAcquire('other'))?.isHeld());
    await one.manager[Symbol.asyncDispose]();
    await clock.advance(0);
    await backend.close();
    assert.equal(clock.timerCount, 0);
  });

  test('are held by nobody who acquired while the sharing out was disposed of, or after it', async () => {
    const clock = new FakeClock();
    const manager = createLeaseManager({ backend: memoryBackend({ clock }), clock });
    const other = createLeaseManager({ backend: memoryBackend({ clock }), clock });
    const leases = loadBalanced(manager, await other.membership('workers'));
    const before = await manager.acquire('shard');
    const handle = leases.requestLease('shard');
    const waiting = handle.acquire({ wait: 'forever' });
    await clock.advance(0);
    await leases[Symbol.asyncDispose]();
    await before.release();
    await clock.advance(0);
    assert.equal(await waiting, null);
    assert.equal(handle.shouldHold(), false);
    assert.equal(await leases.requestLease('another').acquire(), null);
    assert.equal(await manager.inspect('shard'), null);
    await manager[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
});
