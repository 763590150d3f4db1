import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DynamicTable, entryOverheadBytes } from './dynamic-table.ts';

type Entry = readonly [name: string, value: string];

const entry: fc.Arbitrary<Entry> = fc.tuple(fc.string({ maxLength: 20 }), fc.string({ maxLength: 200 }));
const step = fc.oneof({ weight: 20, arbitrary: entry }, { weight: 1, arbitrary: fc.nat({ max: 6000 }) });

const sizeOf = ([name, value]: Entry): number => name.length + value.length + entryOverheadBytes;
const sumOf = (entries: readonly Entry[]): number => entries.reduce((sum, one) => sum + sizeOf(one), 0);

function entriesOf(table: DynamicTable): Entry[] {
  return Array.from({ length: table.length }, (_, age) => [table.nameAt(age), table.valueAt(age)]);
}

describe('the dynamic table', () => {
  test('holds what a list with the newest entry first holds, and tells what leaves it', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const evicted: number[] = [];
        const table = new DynamicTable(4096, (_name, _value, number) => evicted.push(number));
        let maxBytes = 4096;
        const model: Entry[] = [];
        for (const next of steps) {
          const generation = table.generation;
          if (typeof next === 'number') {
            maxBytes = next;
            table.setMaxBytes(next);
          } else {
            table.add(...next);
            model.unshift(next);
          }
          while (sumOf(model) > maxBytes) model.pop();
          expect(entriesOf(table)).toEqual(model);
          expect(table.bytes).toBe(sumOf(model));
          expect(table.generation).toBeGreaterThan(generation);
        }
        expect(evicted).toEqual(evicted.map((_, position) => position));
        expect(evicted.length + table.length).toBe(table.nextNumber);
      }),
    );
  });

  test('is emptied by an entry that is larger than it', () => {
    const table = new DynamicTable(100);
    table.add('a', 'b');
    table.add('a', 'b'.repeat(100));
    expect(entriesOf(table)).toEqual([]);
    expect(table.bytes).toBe(0);
  });

  test('holds nothing with a size of zero', () => {
    const table = new DynamicTable(0);
    table.add('', '');
    expect(entriesOf(table)).toEqual([]);
  });
});
