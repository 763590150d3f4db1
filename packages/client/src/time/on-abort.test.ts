import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { onAbort } from './on-abort.ts';

test('many callbacks share one listener of a signal, are called once each, and can be removed', () => {
  const controller = new AbortController();
  const called: number[] = [];
  const stops = Array.from({ length: 100 }, (_, at) => onAbort(controller.signal, () => called.push(at)));
  expect(getEventListeners(controller.signal, 'abort').length).toBe(1);
  for (const stop of stops.slice(2)) stop();
  controller.abort();
  expect(called).toEqual([0, 1]);
  onAbort(controller.signal, () => called.push(2));
  expect(called).toEqual([0, 1, 2]);
});

test('a signal without callbacks has no listener left', () => {
  const { signal } = new AbortController();
  for (let times = 0; times < 2; times++) {
    const stops = [onAbort(signal, () => {}), onAbort(signal, () => {})];
    expect(getEventListeners(signal, 'abort').length).toBe(1);
    for (const stop of stops) stop();
    for (const stop of stops) stop();
    expect(getEventListeners(signal, 'abort').length).toBe(0);
  }
});
