import fc from 'fast-check';
import { describe, expect, inject, test } from 'vitest';
import { IdIndex } from './id-index.ts';

const int64 = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n);
/** Few enough to occur repeatedly, among them ids that differ in one half only, negative ones and the extremes. */
const knownId = fc.oneof(
  fc.bigInt(-40n, 40n),
  fc.nat(20).map((high) => BigInt(high) << 32n),
  int64,
);

const operation = fc.record({ kind: fc.constantFrom('add', 'add', 'remove', 'find'), id: knownId });

/** One seed has typical collisions; several seeds produce chains of buckets of every shape. */
const seed = fc.integer();

function check(index: IdIndex, model: ReadonlyMap<bigint, number>, ids: Iterable<bigint>): void {
  expect(index.size).toBe(model.size);
  const asked = [...ids];
  expect(asked.map((id) => index.find(id))).toEqual(asked.map((id) => model.get(id) ?? -1));
}

describe('IdIndex', () => {
  test('finds the same rows as a Map after any additions and removals', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 300 }), seed, (operations, seedValue) => {
        const index = new IdIndex(seedValue);
        const model = new Map<bigint, number>();
        for (const [row, { kind, id }] of operations.entries()) {
          if (kind === 'remove') {
            expect(index.remove(id)).toBe(model.get(id) ?? -1);
            model.delete(id);
          } else if (kind === 'add' && !model.has(id)) {
            index.add(id, row);
            model.set(id, row);
          }
          expect(index.find(id)).toBe(model.get(id) ?? -1);
        }
        check(index, model, new Set(operations.map(({ id }) => id)));
      }),
    );
  });

  test('finds all remaining ids when many are added and some of them removed', () => {
    const many = fc.uniqueArray(fc.oneof(fc.bigInt(-5_000n, 5_000n), int64), { minLength: 1_500, maxLength: 3_000 });
    fc.assert(
      fc.property(many, fc.integer({ min: 1, max: 7 }), seed, (ids, keepOneOf, seedValue) => {
        const index = new IdIndex(seedValue);
        const model = new Map(ids.map((id, row) => [id, row]));
        for (const [id, row] of model) index.add(id, row);
        check(index, model, ids);
        for (const [id, row] of [...model]) {
          if (row % keepOneOf === 0) continue;
          expect(index.remove(id)).toBe(row);
          model.delete(id);
        }
        check(index, model, ids);
      }),
      { numRuns: { commit: 5, ci: 20, soak: 500 }[inject('effort')] },
    );
  });
});
