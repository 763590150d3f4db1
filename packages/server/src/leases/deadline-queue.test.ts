import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DeadlineQueue } from './deadline-queue.ts';

const rows = 31;
const everyRow = Array.from({ length: rows }, (_, row) => row);

/** More rows are added than removed: errors deep in a heap show only in a deep heap. */
const operation = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      row: fc.nat(rows - 1),
      dueMs: fc.integer({ min: -50, max: 50 }).map((half) => half / 2),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('remove' as const), row: fc.nat(rows - 1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('takeFirst' as const) }) },
);

describe('DeadlineQueue', () => {
  test('always returns the earliest deadline after any rows were added, moved and removed', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200, size: 'max' }), (operations) => {
        const queue = new DeadlineQueue();
        const model = new Map<number, number>();
        for (const step of operations) {
          if (step.kind === 'set') {
            queue.set(step.row, step.dueMs);
            model.set(step.row, step.dueMs);
          } else if (step.kind === 'remove') {
            queue.remove(step.row);
            model.delete(step.row);
          } else {
            const first = queue.first();
            expect(model.get(first)).toBe(queue.firstDueMs());
            queue.remove(first);
            model.delete(first);
          }
          expect(queue.size).toBe(model.size);
          expect(queue.firstDueMs()).toBe(model.size === 0 ? undefined : Math.min(...model.values()));
          // An assertion per step would take most of the time of this test.
          const isIn = (row: number): boolean => queue.has(row) === model.has(row);
          expect(everyRow.every(isIn)).toBe(true);
        }
        const left = [...model.values()].toSorted((one, other) => one - other);
        for (const dueMs of left) {
          expect(queue.firstDueMs()).toBe(dueMs);
          queue.remove(queue.first());
        }
      }),
    );
  });
});
