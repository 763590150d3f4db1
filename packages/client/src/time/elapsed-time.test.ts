import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { FakeClock } from '../testing/fake-clock.ts';
import { ElapsedTime } from './elapsed-time.ts';

const steps = fc.array(
  fc.record({ passMs: fc.integer({ min: 0, max: 1_000 }), jumpMs: fc.integer({ min: -5_000, max: 5_000 }) }),
  { maxLength: 30 },
);

describe('time that has passed', () => {
  test('is never less than on the monotonic clock, and has what the wall jumped ahead besides', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const clock = new FakeClock();
        const time = new ElapsedTime(clock);
        for (const { passMs, jumpMs } of all) {
          const before = time.readMs();
          clock.jumpWall(jumpMs);
          await clock.stall(passMs);
          const passedMs = time.readMs() - before;
          assert.ok(passedMs >= passMs);
          // What is too little to be told from inexact reading is left out.
          if (jumpMs > 20) assert.ok(passedMs >= passMs + jumpMs && passedMs <= passMs + jumpMs + 20);
          else assert.ok(passedMs <= passMs + 20 + Math.max(0, jumpMs));
        }
      }),
      { numRuns: 50 },
    );
  });

  test('counts many small steps ahead in the end, and none of a wall that trembles', () => {
    const clock = new FakeClock();
    const time = new ElapsedTime(clock);
    const startMs = time.readMs();
    for (let step = 0; step < 1_000; step++) {
      clock.jumpWall(step % 2 === 0 ? 1 : -1);
      time.readMs();
    }
    assert.equal(time.readMs(), startMs);
    for (let step = 0; step < 1_000; step++) {
      clock.jumpWall(1);
      time.readMs();
    }
    assert.ok(time.readMs() - startMs >= 1_000 - 20);
  });
});
