import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { ElapsedTime } from './elapsed-time.ts';

const steps = fc.array(
  fc.record({ passMs: fc.integer({ min: 0, max: 1_000 }), jumpMs: fc.integer({ min: -5_000, max: 5_000 }) }),
  { maxLength: 30 },
);

describe('elapsed time', () => {
  test('is never less than on the monotonic clock, plus the jumps of the wall clock ahead', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const clock = new FakeClock();
        const time = new ElapsedTime(clock);
        for (const { passMs, jumpMs } of all) {
          const before = time.readMs();
          clock.jumpWall(jumpMs);
          await clock.stall(passMs);
          const passedMs = time.readMs() - before;
          expect(passedMs).toBeGreaterThanOrEqual(passMs);
          // A jump within the precision of the readings is ignored.
          if (jumpMs > 20) expect(passedMs >= passMs + jumpMs && passedMs <= passMs + jumpMs + 20).toBe(true);
          else expect(passedMs).toBeLessThanOrEqual(passMs + 20 + Math.max(0, jumpMs));
        }
      }),
      { numRuns: 50 },
    );
  });

  test('counts many small steps ahead in the end, and no jitter of the wall clock', () => {
    const clock = new FakeClock();
    const time = new ElapsedTime(clock);
    const startMs = time.readMs();
    for (let step = 0; step < 1_000; step++) {
      clock.jumpWall(step % 2 === 0 ? 1 : -1);
      time.readMs();
    }
    expect(time.readMs()).toBe(startMs);
    for (let step = 0; step < 1_000; step++) {
      clock.jumpWall(1);
      time.readMs();
    }
    expect(time.readMs() - startMs).toBeGreaterThanOrEqual(1_000 - 20);
  });
});
