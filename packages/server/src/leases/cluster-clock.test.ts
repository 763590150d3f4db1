import { VirtualClock } from '@tenure/test-support';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClusterClock } from './cluster-clock.ts';
import { LeaseClock } from './lease-clock.ts';

/** Monotonic clocks have fractions of a millisecond; here in exact steps of an eighth. */
const eighths = (max: number): fc.Arbitrary<number> => fc.nat(max * 8).map((count) => count / 8);

test('cluster time never runs ahead, and converting a deadline never makes it earlier', async () => {
  const moments = fc.record({
    claimClusterMs: fc.nat(1_000_000),
    bootMs: eighths(1_000),
    ledMs: eighths(5_000),
    leftMs: eighths(5_000),
  });
  await fc.assert(
    fc.asyncProperty(moments, async ({ claimClusterMs, bootMs, ledMs, leftMs }) => {
      const clock = new VirtualClock();
      const leaseClock = new LeaseClock(clock);
      await clock.advance(bootMs);
      const clusterClock = new ClusterClock(leaseClock, claimClusterMs);
      await clock.advance(ledMs);
      const trueMs = claimClusterMs + ledMs;
      expect(clusterClock.nowMs()).toBeLessThanOrEqual(trueMs);
      expect(clusterClock.nowMs()).toBeGreaterThan(trueMs - 1);
      const deadlineMs = leaseClock.nowMs() + leftMs;
      const dateMs = clusterClock.toClusterMs(deadlineMs);
      expect(dateMs).toBeGreaterThanOrEqual(trueMs + leftMs);
      expect(dateMs).toBeLessThan(trueMs + leftMs + 1);
      expect(clusterClock.toLeaseMs(dateMs)).toBeGreaterThanOrEqual(deadlineMs);
      for (const stamp of [clusterClock.nowMs(), dateMs]) expect(Number.isInteger(stamp)).toBe(true);
    }),
  );
});
