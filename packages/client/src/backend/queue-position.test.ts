import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Entry, EntryMode } from './lease-backend.ts';
import { holders, queuePosition } from './queue-position.ts';

const modes: readonly EntryMode[] = ['exclusive', 'shared', 'permit', 'member'];

const queues = fc
  .array(fc.record({ mode: fc.constantFrom(...modes), permits: fc.integer({ min: 1, max: 3 }) }), { maxLength: 8 })
  .map((items) => items.map((item, at) => entry(at + 1, item.mode, item.permits)));

function entry(sequence: number, mode: EntryMode, permits = 1): Entry {
  const key = { name: 'name', id: `${sequence}`, sequence: BigInt(sequence) };
  return { ...key, holder: 'me', mode, permits, ttlMs: 1000, data: '', expiresInMs: undefined };
}

const sequences = (entries: readonly Entry[]): number[] => entries.map(({ sequence }) => Number(sequence));

describe('the position in a queue', () => {
  test('of exclusive entries the first holds, and shared entries hold together up to the first exclusive one', () => {
    expect(sequences(holders([entry(1, 'exclusive'), entry(2, 'exclusive')]))).toEqual([1]);
    const mixed = [entry(1, 'shared'), entry(2, 'shared'), entry(3, 'exclusive'), entry(4, 'shared')];
    expect(sequences(holders(mixed))).toEqual([1, 2]);
    expect(sequences(queuePosition(mixed, mixed[2]!).ahead)).toEqual([1, 2]);
    expect(sequences(queuePosition(mixed, mixed[3]!).ahead)).toEqual([3]);
  });

  test('of a semaphore as many hold as it has permits, and members always hold', () => {
    const permits = [1, 2, 3].map((sequence) => entry(sequence, 'permit', 2));
    expect(sequences(holders(permits))).toEqual([1, 2]);
    expect(sequences(holders([entry(1, 'exclusive'), entry(2, 'member'), entry(3, 'member')]))).toEqual([1, 2, 3]);
  });

  test('an exclusive entry never holds beside another, and the first entry of any queue holds', () => {
    fc.assert(
      fc.property(queues, (queue) => {
        const holding = holders(queue).filter(({ mode }) => mode !== 'member');
        const exclusive = holding.some(({ mode }) => mode === 'exclusive');
        expect(!exclusive || holding.length === 1).toBe(true);
        expect(queue.length === 0 || holders(queue).length > 0).toBe(true);
      }),
    );
  });

  test('a holder keeps holding when other entries leave or are added', () => {
    fc.assert(
      fc.property(queues, queues, fc.func(fc.boolean()), (queue, later, stays) => {
        for (const mine of holders(queue)) {
          const left = queue.filter((other) => other === mine || stays(other.id));
          const come = later.map((other) => entry(Number(other.sequence) + 100, other.mode, other.permits));
          expect(queuePosition([...left, ...come], mine).holds).toBe(true);
        }
      }),
    );
  });
});
