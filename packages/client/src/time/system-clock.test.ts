import assert from 'node:assert/strict';
import { test } from 'vitest';
import { systemClock } from './system-clock.ts';

test('no timer of the system calls back before its time, to the fraction of a millisecond', async () => {
  const early = await Promise.all(
    Array.from({ length: 500 }, async (_, at) => {
      // Begun at different fractions of a millisecond.
      await new Promise((resolve) => setTimeout(resolve, at / 10));
      const delayMs = 1 + at / 50;
      const startedMs = systemClock.now().monotonicMs;
      // The timer by itself would keep no process alive, as this one does.
      const keptAlive = setTimeout(() => {}, 60_000);
      await new Promise<void>((resolve) => systemClock.setTimer(delayMs, resolve));
      clearTimeout(keptAlive);
      return delayMs - (systemClock.now().monotonicMs - startedMs);
    }),
  );
  assert.deepEqual(
    early.filter((ms) => ms > 0),
    [],
  );
});
