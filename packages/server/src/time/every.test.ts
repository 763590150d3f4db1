import { expect, test } from 'vitest';
import { every } from './every.ts';
import { VirtualClock } from '@tenure/test-support';

test('calls back after each interval, and once after a stall of several intervals', async () => {
  const clock = new VirtualClock();
  const atMs: number[] = [];
  const cancel = every(clock, 100, () => atMs.push(clock.monotonicMs()));
  await clock.advance(250);
  await clock.stall(1_000);
  await clock.advance(100);
  expect(atMs).toEqual([100, 200, 1_250, 1_350]);
  cancel();
  await clock.advance(1_000);
  expect(atMs).toHaveLength(4);
  expect(clock.timers).toBe(0);
});

test('may be stopped from its own callback', async () => {
  const clock = new VirtualClock();
  let calls = 0;
  const cancel = every(clock, 100, () => {
    calls += 1;
    cancel();
  });
  await clock.advance(1_000);
  expect(calls).toBe(1);
  expect(clock.timers).toBe(0);
});
