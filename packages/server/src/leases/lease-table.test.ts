import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LeaseTable } from './lease-table.ts';
import { trackedStates, type TrackedLease } from './tracked-lease.ts';

const lease: fc.Arbitrary<TrackedLease> = fc.record({
  id: fc.oneof(fc.bigInt(-20n, 20n), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)),
  ttlMs: fc.oneof(fc.integer({ min: 1, max: 100_000 }), fc.constant(Number.MAX_SAFE_INTEGER)),
  renewIndex: fc.maxSafeNat(),
  deadlineMs: fc.double({ noNaN: true, min: 0, max: 1e15 }),
  state: fc.constantFrom(...trackedStates),
});

describe('LeaseTable', () => {
  test('holds the added leases, and reuses the rows of removed ones', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('put', 'change', 'remove'), lease), { maxLength: 200 }),
        (steps) => {
          const table = new LeaseTable(7);
          const model = new Map<bigint, TrackedLease>();
          for (const [kind, each] of steps) {
            const row = table.find(each.id);
            expect(row >= 0).toBe(model.has(each.id));
            if (row < 0) {
              expect(table.lease(table.add(each))).toEqual(each);
              model.set(each.id, each);
            } else if (kind === 'remove') {
              table.remove(row);
              model.delete(each.id);
            } else {
              table.setDeadlineMs(row, each.deadlineMs);
              table.setRenewIndex(row, each.renewIndex);
              table.setState(row, each.state);
              model.set(each.id, { ...each, ttlMs: table.ttlMsOf(row) });
            }
          }
          expect(table.size).toBe(model.size);
          for (const each of model.values()) expect(table.lease(table.find(each.id))).toEqual(each);
        },
      ),
    );
  });

  test('keeps rows of several chunks apart, and reuses released rows without new memory', () => {
    const table = new LeaseTable(7);
    const make = (id: bigint): TrackedLease => {
      return { id, ttlMs: Number(id) * 3, renewIndex: Number(id), deadlineMs: Number(id) / 2, state: 'checkpointed' };
    };
    const rows = new Set<number>();
    const held = Array.from({ length: 40_000 }, (_, at) => BigInt(at + 1));
    for (const id of held) rows.add(table.add(make(id)));
    expect(rows.size).toBe(held.length);
    expect(held.map((id) => table.lease(table.find(id)))).toEqual(held.map(make));
    for (const id of held.slice(0, 5_000)) table.remove(table.find(id));
    for (const id of held.slice(0, 5_000)) rows.add(table.add(make(-id)));
    expect(rows.size).toBe(held.length);
    expect(table.size).toBe(held.length);
  });
});
