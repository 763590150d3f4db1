import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { FakeClock } from './fake-clock.ts';

describe('FakeClock', () => {
  test('runs timers in the order in which they are due, each at its moment', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 20 }), async (delaysMs) => {
        const clock = new FakeClock();
        const ran: { number: number; atMs: number }[] = [];
        for (const [number, delayMs] of delaysMs.entries()) {
          clock.setTimer(delayMs, () => ran.push({ number, atMs: clock.now().monotonicMs }));
        }
        await clock.advance(50);
        const wanted = delaysMs
          .map((atMs, number) => ({ number, atMs }))
          .toSorted((one, other) => one.atMs - other.atMs);
        assert.deepEqual(ran, wanted);
        assert.equal(clock.timerCount, 0);
        assert.equal(clock.now().monotonicMs, 50);
      }),
    );
  });

  test('lets promises settle, and runs what they set on the way', async () => {
    const clock = new FakeClock();
    const moments: number[] = [];
    const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.setTimer(ms, resolve));
    const walk = async (): Promise<void> => {
      for (let step = 0; step < 5; step++) {
        await sleep(10);
        for (let turn = 0; turn < 20; turn++) await Promise.resolve();
        moments.push(clock.now().monotonicMs);
      }
    };
    const walked = walk();
    await clock.advance(50);
    await walked;
    assert.deepEqual(moments, [10, 20, 30, 40, 50]);
  });

  test('runs no timer before its time and none that was cancelled', async () => {
    const clock = new FakeClock();
    let runs = 0;
    clock.setTimer(11, () => runs++);
    clock.setTimer(5, () => runs++).cancel();
    await clock.advance(10);
    assert.equal(runs, 0);
    await clock.advance(1);
    assert.equal(runs, 1);
  });

  test('shows a stall as both clocks further on and timers that run late', async () => {
    const clock = new FakeClock({ wallMs: 1_000 });
    const seen: number[] = [];
    clock.setTimer(10, () => seen.push(clock.now().monotonicMs));
    await clock.stall(500);
    assert.deepEqual(seen, [500]);
    assert.deepEqual(clock.now(), { monotonicMs: 500, wallMs: 1_500 });
  });

  test('sets the wall alone, forward and back', async () => {
    const clock = new FakeClock({ wallMs: 1_000 });
    let runs = 0;
    clock.setTimer(10, () => runs++);
    clock.jumpWall(60_000);
    clock.jumpWall(-1_000);
    await clock.advance(0);
    assert.deepEqual(clock.now(), { monotonicMs: 0, wallMs: 60_000 });
    assert.equal(runs, 0);
    await assert.rejects(clock.advance(-1), RangeError);
  });
});
