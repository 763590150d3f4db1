import { expect, test } from 'vitest';
import { FailureBackoff } from './failure-backoff.ts';

function delayAfter(failures: number): number {
  const backoff = new FailureBackoff();
  for (let i = 0; i < failures; i += 1) backoff.failed('a', 1000);
  return backoff.readyAtMs('a', 1000) - 1000;
}

test('the first failures cost nothing, and then the delay doubles up to 5 s', () => {
  expect([0, 4].map(delayAfter)).toEqual([-Infinity, -Infinity]);
  expect([5, 6, 7, 10, 11, 1000].map(delayAfter)).toEqual([100, 200, 400, 3200, 5000, 5000]);
});

test('failures are forgotten one a minute, and 15 at most are counted', () => {
  const backoff = new FailureBackoff();
  for (let i = 0; i < 1000; i += 1) backoff.failed('a', 0);
  expect(backoff.readyAtMs('a', 10 * 60_000)).toBe(100);
  expect(backoff.readyAtMs('a', 11 * 60_000)).toBe(-Infinity);
  expect(backoff.size).toBe(1);
  backoff.readyAtMs('a', 15 * 60_000);
  expect(backoff.size).toBe(0);
});

test('the table is bounded, and a client that goes on guessing stays in it', () => {
  const backoff = new FailureBackoff();
  for (let i = 0; i < 30_000; i += 1) {
    backoff.failed(`client ${i}`, i);
    if (i % 1000 === 0) backoff.failed('guesser', i);
  }
  expect(backoff.size).toBe(10_000);
  expect(backoff.readyAtMs('guesser', 30_000)).toBe(29_000 + 5000);
});
