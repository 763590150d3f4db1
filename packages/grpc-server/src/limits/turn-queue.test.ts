import fc from 'fast-check';
import { expect, inject, test } from 'vitest';
import { TurnQueue } from './turn-queue.ts';

const step = fc.oneof(
  fc.record({ do: fc.constant('push'), member: fc.nat(200) }),
  fc.record({ do: fc.constant('delete'), member: fc.nat(200) }),
  fc.record({ do: fc.constant('shift'), member: fc.constant(0) }),
  fc.record({ do: fc.constant('rotate'), member: fc.constant(0) }),
);

test('every member is queued once and gets one turn', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600, size: 'max' }), (steps) => {
      const queue = new TurnQueue<number>();
      const waiting = new Set<number>();
      for (const { do: action, member } of steps) {
        if (action === 'push') queue.push(member);
        if (action === 'push') waiting.add(member);
        if (action === 'delete') queue.delete(member);
        if (action === 'delete') waiting.delete(member);
        if (action === 'shift' || action === 'rotate') {
          const next = queue.shift();
          expect(next === undefined).toBe(waiting.size === 0);
          if (next !== undefined) expect(waiting.delete(next)).toBe(true);
          if (next !== undefined && action === 'rotate') {
            queue.push(next);
            waiting.add(next);
          }
        }
        expect(queue.size).toBe(waiting.size);
      }
    }),
    { numRuns: { commit: 20, ci: 100, soak: 2_000 }[inject('effort')] },
  );
});

test('first come, first served, and a member added again is last', () => {
  const queue = new TurnQueue<string>();
  for (const member of ['a', 'b', 'c', 'a']) queue.push(member);
  expect(queue.shift()).toBe('a');
  queue.push('a');
  queue.delete('b');
  expect([queue.shift(), queue.shift(), queue.shift()]).toEqual(['c', 'a', undefined]);
});

test('no member starves while others are added and removed', () => {
  const queue = new TurnQueue<number>();
  queue.push(-1);
  let turns = 0;
  for (let n = 0; n < 100; n++) queue.push(n);
  while (queue.shift() !== -1) turns += 1;
  expect(turns).toBe(0);
  queue.push(-1);
  for (let n = 1000; queue.size > 0; n++) {
    const member = queue.shift();
    if (member === -1) break;
    turns += 1;
    queue.push(n);
  }
  expect(turns).toBe(100);
});
