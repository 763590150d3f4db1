import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
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
  test('gives a lease to one at a time, first come first served, with growing tokens', async () => {
    const { clock, managers } = world(3);
    const [one, two, three] = managers as [LeaseManager, LeaseManager, LeaseManager];
    const hold = await one.acquire('job');
    assert.equal(hold.isHeld(), true);
    assert.equal(await two.tryAcquire('job'), null);
    await assert.rejects(two.acquire('job', { wait: 'none' }), LeaseHeldError);
    const order: string[] = [];
    const waiting = [two, three, one].map(async (manager) => {
      await using next = await manager.acquire('job');
      order.push(`${next.holder}:${next.fencingToken}`);
    });
    await clock.advance(10_000);
    assert.equal(order.length, 0);
    assert.equal(hold.isHeld(), true);
    assert.equal((await three.inspect('job'))?.holder, 'holder-0');
    assert.equal((await three.inspect('job'))?.waiting, 3);
    assert.equal(await hold.release(), true);
    await clock.advance(0);
    await Promise.all(waiting);
    assert.deepEqual(
      order.map((entry) => entry.split(':')[0]),
      ['holder-1', 'holder-2', 'holder-0'],
    );
    assert.equal(await one.inspect('job'), null);
    assert.equal(hold.signal.aborted, false);
  });

  test('with the real clock', async () => {
    const ttlMs = 600;
    await using leases = createLeaseManager({ backend: memoryBackend(), ttlMs });
    const hold = await leases.acquire('job');
    const waiting = leases.acquire('job', { wait: 'forever' });
    const stoodStillMs = await longestStall(1.5 * ttlMs);
    // A process that could not run for half a life may have been too late to renew it.
    if (stoodStillMs < ttlMs / 2) assert.equal(hold.isHeld(), true);
    await hold.release();
    await using next = await waiting;
    assert.ok(next.fencingToken > hold.fencingToken);
  });
});

/** Lets time pass, and says for how long at most this process could not run meanwhile. */
async function longestStall(untilMs: number): Promise<number> {
  let [beforeMs, longestMs] = [performance.now(), 0];
  for (const endMs = beforeMs + untilMs; beforeMs < endMs;) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    const nowMs = performance.now();
    [beforeMs, longestMs] = [nowMs, Math.max(longestMs, nowMs - beforeMs)];
  }
  return longestMs;
}
