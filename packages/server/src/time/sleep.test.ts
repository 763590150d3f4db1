import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { sleep } from './sleep.ts';
import { VirtualClock } from '@tenure/test-support';

test('ends after its delay or with its signal, and leaves neither a timer nor a listener', async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const ended: string[] = [];
  void sleep(clock, 100, stop.signal).then(() => ended.push('short'));
  void sleep(clock, 1_000, stop.signal).then(() => ended.push('long'));
  await clock.advance(99);
  expect(ended).toEqual([]);
  await clock.advance(1);
  expect(ended).toEqual(['short']);
  stop.abort();
  await clock.settle();
  expect(ended).toEqual(['short', 'long']);
  expect(clock.timers).toBe(0);
  expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
});

test('resolves at once if the signal is already aborted', async () => {
  const clock = new VirtualClock();
  await sleep(clock, 1_000, AbortSignal.abort());
  expect(clock.timers).toBe(0);
});
