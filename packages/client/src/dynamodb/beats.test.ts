import assert from 'node:assert/strict';
import { test } from 'vitest';
import { Beats } from './beats.ts';

test('an entry lives for its TTL from when its last beat was first seen, by the clock of who looks', () => {
  const beats = new Beats();
  const left = (beat: string, nowMs: number): number | undefined =>
    beats.observe('name', [{ id: 'a', beat, ttlMs: 1000 }], nowMs).get('a');
  assert.equal(left('one', 5000), 1000);
  assert.equal(left('one', 5900), 100);
  assert.equal(left('two', 5950), 1000);
  assert.equal(left('two', 6950), 0);
  beats.observe('name', [], 7000);
  assert.equal(left('two', 8000), 1000);
});
