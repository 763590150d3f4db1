import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import type { Entry, EntryMode } from './lease-backend.ts';
import { holders, standing } from './standing.ts';

const modes: readonly EntryMode[] = ['exclusive', 'shared', 'permit', 'member'];

const lines = fc
  .array(fc.record({ mode: fc.constantFrom(...modes), permits: fc.integer({ min: 1, max: 3 }) }), { maxLength: 8 })
  .map((items) => items.map((item, at) => entry(at + 1, item.mode, item.permits)));

function entry(ticket: number, mode: EntryMode, permits = 1): Entry {
  const key = { name: 'name', id: `${ticket}`, ticket: BigInt(ticket) };
  return { ...key, holder: 'me', mode, permits, ttlMs: 1000, data: '', expiresInMs: undefined };
}

const tickets = (entries: readonly Entry[]): number[] => entries.map(({ ticket }) => Number(ticket));

describe('standing in a line', () => {
  test('of exclusive ones the first holds, and shared ones hold together until an exclusive one comes', () => {
    assert.deepEqual(tickets(holders([entry(1, 'exclusive'), entry(2, 'exclusive')])), [1]);
    const mixed = [entry(1, 'shared'), entry(2, 'shared'), entry(3, 'exclusive'), entry(4, 'shared')];
    assert.deepEqual(tickets(holders(mixed)), [1, 2]);
    assert.deepEqual(tickets(standing(mixed, mixed[2]!).ahead), [1, 2]);
    assert.deepEqual(tickets(standing(mixed, mixed[3]!).ahead), [3]);
  });

  test('of a semaphore the first so many hold, and members always do', () => {
    const permits = [1, 2, 3].map((ticket) => entry(ticket, 'permit', 2));
    assert.deepEqual(tickets(holders(permits)), [1, 2]);
    assert.deepEqual(tickets(holders([entry(1, 'exclusive'), entry(2, 'member'), entry(3, 'member')])), [1, 2, 3]);
  });

  test('an exclusive one never holds beside another, and the first of any line holds', () => {
    fc.assert(
      fc.property(lines, (line) => {
        const holding = holders(line).filter(({ mode }) => mode !== 'member');
        const exclusive = holding.some(({ mode }) => mode === 'exclusive');
        assert.ok(!exclusive || holding.length === 1);
        assert.ok(line.length === 0 || holders(line).length > 0);
      }),
    );
  });

  test('who holds goes on holding whoever leaves and whoever comes', () => {
    fc.assert(
      fc.property(lines, lines, fc.func(fc.boolean()), (line, later, stays) => {
        for (const mine of holders(line)) {
          const left = line.filter((other) => other === mine || stays(other.id));
          const come = later.map((other) => entry(Number(other.ticket) + 100, other.mode, other.permits));
          assert.ok(standing([...left, ...come], mine).holds);
        }
      }),
    );
  });
});
