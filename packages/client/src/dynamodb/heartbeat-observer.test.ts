import { expect, test } from 'vitest';
import { HeartbeatObserver } from './heartbeat-observer.ts';

test('an entry lives for its TTL after its last heartbeat was first seen, by the clock of the observer', () => {
  const heartbeats = new HeartbeatObserver();
  const left = (beat: string, nowMs: number): number | undefined =>
    heartbeats.observe('name', [{ id: 'a', beat, ttlMs: 1000 }], nowMs).get('a');
  expect(left('one', 5000)).toBe(1000);
  expect(left('one', 5900)).toBe(100);
  expect(left('two', 5950)).toBe(1000);
  expect(left('two', 6950)).toBe(0);
  heartbeats.observe('name', [], 7000);
  expect(left('two', 8000)).toBe(1000);
});
