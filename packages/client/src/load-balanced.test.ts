import { describe, expect, test } from 'vitest';
import { createLeaseManager } from './lease-manager.ts';
import { loadBalanced } from './load-balanced.ts';
import { memoryBackend } from './memory/memory-backend.ts';
import { FakeClock } from './testing/fake-clock.ts';

describe('leases that are balanced over members', () => {
  test('are held by their owner, and move when the members change', async () => {
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
    expect(holds.every((hold) => hold?.isHeld())).toBe(true);

    const two = await join('two');
    await clock.advance(0);
    const moved = handles.filter((handle) => !handle.shouldHold());
    expect(moved.length).toBeGreaterThan(0);
    expect(moved.length).toBeLessThan(names.length);
    for (const [at, handle] of handles.entries()) {
      const isMoved = moved.includes(handle);
      expect(handle.isHeld()).toBe(!isMoved);
      // The signal tells the work under it to stop.
      expect(holds[at]!.signal.aborted).toBe(isMoved);
      expect(await handle.acquire().then((hold) => hold === holds[at])).toBe(!isMoved);
      const there = two.leases.requestLease(handle.name);
      expect(there.shouldHold()).toBe(isMoved);
      expect((await there.acquire()) !== null).toBe(isMoved);
    }

    await two.manager[Symbol.asyncDispose]();
    await clock.advance(0);
    expect(handles.every((handle) => handle.shouldHold())).toBe(true);
    expect((await Promise.all(handles.map((handle) => handle.acquire()))).every((hold) => hold?.isHeld())).toBe(true);
    await one.leases[Symbol.asyncDispose]();
    expect(handles.every((handle) => !handle.isHeld())).toBe(true);
    expect((await one.manager.tryAcquire('other'))?.isHeld()).toBe(true);
    await one.manager[Symbol.asyncDispose]();
    await clock.advance(0);
    await backend.close();
    expect(clock.timerCount).toBe(0);
  });

  test('are not held after the balancing was disposed of, even if acquired during or after that', async () => {
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
    expect(await waiting).toBe(null);
    expect(handle.shouldHold()).toBe(false);
    expect(await leases.requestLease('another').acquire()).toBe(null);
    expect(await manager.inspect('shard')).toBe(null);
    await manager[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
});
