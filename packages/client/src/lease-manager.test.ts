import { describe, expect, test } from 'vitest';
import { LeaseHeldError } from './errors/lease-held-error.ts';
import { createLeaseManager } from './lease-manager.ts';
import type { LeaseManager } from './lease-manager.ts';
import { memoryBackend } from './memory/memory-backend.ts';
import { FakeClock } from './testing/fake-clock.ts';

interface World {
  readonly clock: FakeClock;
  readonly managers: readonly LeaseManager[];
}

function world(count = 2, ttlMs = 3_000): World {
  const clock = new FakeClock();
  const backend = memoryBackend({ clock });
  const managers = Array.from({ length: count }, (_, at) => {
    return createLeaseManager({ backend, clock, holder: `holder-${at}`, ttlMs });
  });
  return { clock, managers };
}

describe('a lease manager', () => {
  test('grants a lease to one holder at a time, first come first served, with growing tokens', async () => {
    const { clock, managers } = world(3);
    const [one, two, three] = managers as [LeaseManager, LeaseManager, LeaseManager];
    const hold = await one.acquire('job');
    expect(hold.isHeld()).toBe(true);
    expect(await two.tryAcquire('job')).toBe(null);
    await expect(two.acquire('job', { wait: 'none' })).rejects.toThrow(LeaseHeldError);
    const order: string[] = [];
    const waiting = [two, three, one].map(async (manager) => {
      await using next = await manager.acquire('job');
      order.push(`${next.holder}:${next.fencingToken}`);
    });
    await clock.advance(10_000);
    expect(order.length).toBe(0);
    expect(hold.isHeld()).toBe(true);
    expect((await three.inspect('job'))?.holder).toBe('holder-0');
    expect((await three.inspect('job'))?.waiting).toBe(3);
    expect(await hold.release()).toBe(true);
    await clock.advance(0);
    await Promise.all(waiting);
    expect(order.map((entry) => entry.split(':')[0])).toEqual(['holder-1', 'holder-2', 'holder-0']);
    expect(await one.inspect('job')).toBe(null);
    expect(hold.signal.aborted).toBe(false);
  });

  test('with the real clock', async () => {
    const ttlMs = 600;
    await using leases = createLeaseManager({ backend: memoryBackend(), ttlMs });
    const hold = await leases.acquire('job');
    const waiting = leases.acquire('job', { wait: 'forever' });
    const stoodStillMs = await longestStall(1.5 * ttlMs);
    // A process that could not run for half a TTL may have renewed too late.
    if (stoodStillMs < ttlMs / 2) expect(hold.isHeld()).toBe(true);
    await hold.release();
    await using next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(hold.fencingToken);
  });
});

/** Lets time pass, and returns the longest time in which this process could not run meanwhile. */
async function longestStall(untilMs: number): Promise<number> {
  let [beforeMs, longestMs] = [performance.now(), 0];
  for (const endMs = beforeMs + untilMs; beforeMs < endMs;) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    const nowMs = performance.now();
    [beforeMs, longestMs] = [nowMs, Math.max(longestMs, nowMs - beforeMs)];
  }
  return longestMs;
}
