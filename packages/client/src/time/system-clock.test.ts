import { expect, test } from 'vitest';
import { systemClock } from './system-clock.ts';

test('no timer of the system fires early, to the fraction of a millisecond', async () => {
  const early = await Promise.all(
    Array.from({ length: 500 }, async (_, at) => {
      // Started at different fractions of a millisecond.
      await new Promise((resolve) => setTimeout(resolve, at / 10));
      const delayMs = 1 + at / 50;
      const startedMs = systemClock.now().monotonicMs;
      // The timer itself would not keep the process alive, as this one does.
      const keptAlive = setTimeout(() => {}, 60_000);
      await new Promise<void>((resolve) => systemClock.setTimer(delayMs, resolve));
      clearTimeout(keptAlive);
      return delayMs - (systemClock.now().monotonicMs - startedMs);
    }),
  );
  expect(early.filter((ms) => ms > 0)).toEqual([]);
});
