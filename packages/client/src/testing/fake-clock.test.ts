import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
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
        expect(ran).toStrictEqual(wanted);
        expect(clock.timerCount).toBe(0);
        expect(clock.now().monotonicMs).toBe(50);
      }),
    );
  });

  test('lets promises settle, and runs the timers that they set', async () => {
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
    expect(moments).toEqual([10, 20, 30, 40, 50]);
  });

  test('runs no timer early, and none that was cancelled', async () => {
    const clock = new FakeClock();
    let runs = 0;
    clock.setTimer(11, () => runs++);
    clock.setTimer(5, () => runs++).cancel();
    await clock.advance(10);
    expect(runs).toBe(0);
    await clock.advance(1);
    expect(runs).toBe(1);
  });

  test('advances both clocks in a stall and runs the timers late', async () => {
    const clock = new FakeClock({ wallMs: 1_000 });
    const seen: number[] = [];
    clock.setTimer(10, () => seen.push(clock.now().monotonicMs));
    await clock.stall(500);
    expect(seen).toEqual([500]);
    expect(clock.now()).toStrictEqual({ monotonicMs: 500, wallMs: 1_500 });
  });

  test('sets the wall clock alone, forward and back', async () => {
    const clock = new FakeClock({ wallMs: 1_000 });
    let runs = 0;
    clock.setTimer(10, () => runs++);
    clock.jumpWall(60_000);
    clock.jumpWall(-1_000);
    await clock.advance(0);
    expect(clock.now()).toStrictEqual({ monotonicMs: 0, wallMs: 60_000 });
    expect(runs).toBe(0);
    await expect(clock.advance(-1)).rejects.toThrow(RangeError);
  });
});
