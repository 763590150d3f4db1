import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'vitest';
import { onAbort } from './on-abort.ts';

test('many wait for one signal with one listener, each is called once, and may stop waiting', () => {
  const controller = new AbortController();
  const called: number[] = [];
  const stops = Array.from({ length: 100 }, (_, at) => onAbort(controller.signal, () => called.push(at)));
  assert.equal(getEventListeners(controller.signal, 'abort').length, 1);
  for (const stop of stops.slice(2)) stop();
  controller.abort();
  assert.deepEqual(called, [0, 1]);
  onAbort(controller.signal, () => called.push(2));
  assert.deepEqual(called, [0, 1, 2]);
});

test('a signal for which nobody waits any more is left as it was', () => {
  const { signal } = new AbortController();
  for (let times = 0; times < 2; times++) {
    const stops = [onAbort(signal, () => {}), onAbort(signal, () => {})];
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    for (const stop of stops) stop();
    for (const stop of stops) stop();
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  }
});
