import { VirtualClock } from '@tenure/test-support';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LeaseClock } from './lease-clock.ts';

/** The part of a stall that may go undetected: the part before the delayed tick, and the shortest detected stall. */
const unnoticedMs = 50 + 100;

const step = fc.oneof(
  fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 500 }) }),
  fc.record({ kind: fc.constant('stall' as const), ms: fc.integer({ min: 1, max: 5_000 }) }),
);

describe('the lease clock', () => {
  test('skips every stall except its beginning, for any first reader, and never goes back', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const clock = new VirtualClock();
        const leaseClock = new LeaseClock(clock);
        leaseClock.start();
        let last = leaseClock.nowMs();
        let ranMs = 0;
        let stalls = 0;
        const look = (): void => {
          const now = leaseClock.nowMs();
          expect(now).toBeGreaterThanOrEqual(last);
          expect(now).toBeGreaterThanOrEqual(ranMs);
          expect(now).toBeLessThanOrEqual(ranMs + stalls * unnoticedMs);
          last = now;
        };
        for (const { kind, ms } of steps) {
          if (kind === 'advance') {
            await clock.advance(ms);
            ranMs += ms;
          } else {
            stalls += 1;
            await clock.stall(ms, look);
          }
          look();
        }
        leaseClock.stop();
      }),
    );
  });

  test('never goes back or ahead of true time when it is read during a stall', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 130 }), { maxLength: 20 }), (stepsMs) => {
        let trueMs = 0;
        // No timer fires: the clock is read while the event loop is blocked.
        const blocked = Object.assign(new VirtualClock(), { monotonicMs: () => trueMs, after: () => () => {} });
        const leaseClock = new LeaseClock(blocked);
        leaseClock.start();
        let last = leaseClock.nowMs();
        for (const stepMs of stepsMs) {
          trueMs += stepMs;
          const now = leaseClock.nowMs();
          expect(now).toBeGreaterThanOrEqual(last);
          expect(now).toBeLessThanOrEqual(last + stepMs);
          last = now;
        }
        expect(last).toBeLessThanOrEqual(unnoticedMs);
      }),
    );
  });

  test('counts the detected stalls', async () => {
    const clock = new VirtualClock();
    const leaseClock = new LeaseClock(clock);
    leaseClock.start();
    await clock.advance(1_000);
    expect(leaseClock.stallCount()).toBe(0);
    let seenInside = 0;
    clock.after(10, () => (seenInside = leaseClock.stallCount()));
    await clock.stall(3_000);
    expect(seenInside).toBe(1);
    expect(leaseClock.stallCount()).toBe(1);
  });

  test('equals the monotonic clock before its start and after its stop', async () => {
    const clock = new VirtualClock();
    const leaseClock = new LeaseClock(clock);
    await clock.stall(1_000);
    expect(leaseClock.nowMs()).toBe(1_000);
    leaseClock.start();
    leaseClock.stop();
    await clock.stall(1_000);
    expect(leaseClock.nowMs()).toBe(2_000);
  });
});
