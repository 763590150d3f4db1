import { expect, test } from 'vitest';
import { FairQueue } from './fair-queue.ts';

function takeAll(queue: FairQueue<string, string>, mayTake?: (owner: string) => boolean): string[] {
  const taken: string[] = [];
  for (;;) {
    const owner = queue.next(mayTake);
    if (owner === undefined) return taken;
    const first = queue.peek(owner);
    const item = queue.take(owner) as string;
    expect(item).toBe(first);
    taken.push(item);
  }
}

test('owners take turns, and each gets its items in order', () => {
  const queue = new FairQueue<string, string>();
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'c2']) queue.push(item.charAt(0), item);
  expect([queue.size, queue.waitingFor('a'), queue.waitingFor('d')]).toEqual([6, 3, 0]);
  expect(takeAll(queue)).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
  expect(queue.size).toBe(0);
});

test('the owner of the most items, and its last one', () => {
  const queue = new FairQueue<string, string>();
  expect([queue.heaviest(), queue.peekLast('a')]).toEqual([undefined, undefined]);
  for (const item of ['a1', 'b1', 'b2', 'b3', 'c1', 'c2']) queue.push(item.charAt(0), item);
  queue.take('b');
  queue.delete('b', 'b3');
  expect([queue.heaviest(), queue.peekLast('b'), queue.peekLast('c')]).toEqual(['c', 'b2', 'c2']);
});

test('an owner that may not take keeps its turn, and a removed owner has none', () => {
  const queue = new FairQueue<string, string>();
  for (const item of ['a1', 'b1', 'b2', 'c1']) queue.push(item.charAt(0), item);
  queue.delete('b', 'b1');
  queue.delete('c', 'c1');
  queue.delete('d', 'd1');
  expect(queue.size).toBe(2);
  expect(queue.next((owner) => owner !== 'a')).toBe('b');
  expect(queue.next()).toBe('a');
  expect(takeAll(queue, (owner) => owner !== 'a')).toEqual(['b2']);
  expect(takeAll(queue)).toEqual(['a1']);
});
