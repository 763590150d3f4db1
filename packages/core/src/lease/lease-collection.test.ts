import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IntervalSet } from '../mvcc/interval-set.ts';
import { KeyEntry } from '../mvcc/key-entry.ts';
import { LeaseCollection } from './lease-collection.ts';
import type { Lease } from './lease-types.ts';

function lease(id: bigint, options: Partial<Lease> = {}): Lease {
  return { id, ttlMs: 1000, label: '', renewIndex: 1, liveEpoch: 0, deadlineMs: undefined, ...options };
}

function entry(key: string): KeyEntry {
  return new KeyEntry({ key, value: '', createRevision: 1, modRevision: 1, version: 1, lease: 1n });
}

function namesOf(keys: Iterator<string>): string[] {
  const names: string[] = [];
  for (let next = keys.next(); next.done !== true; next = keys.next()) names.push(next.value);
  return names;
}

describe('the lease collection', () => {
  test('keeps a frozen copy unchanged', () => {
    const leases = new LeaseCollection();
    const ids = Array.from({ length: 2000 }, (_, i) => BigInt(i * 7919) - 5_000_000n);
    for (const id of ids) leases.add(lease(id));
    const frozen = leases.freeze();
    for (const id of ids) {
      if (id % 3n === 0n) leases.remove(id, undefined, () => undefined);
      else leases.replace(lease(id, { deadlineMs: 5 }));
    }
    leases.add(lease(1n));
    expect([...frozen()]).toEqual(ids.map((id) => lease(id)));
    expect(leases.size).toBe(ids.filter((id) => id % 3n !== 0n).length + 1);
  });

  test('detaches the keys of a removed lease in order, and removes a lease only if its renewIndex matches', () => {
    const leases = new LeaseCollection();
    leases.add(lease(1n, { renewIndex: 4 }));
    for (const key of ['c', 'a', 'b']) leases.attach(1n, entry(key));
    expect(namesOf(leases.keysOf(1n))).toEqual(['a', 'b', 'c']);
    const orphans: string[] = [];
    const orphan = (one: KeyEntry): void => void orphans.push(one.head.key);
    expect(leases.remove(1n, 5, orphan)).toBe(false);
    expect(leases.remove(1n, 4, orphan)).toBe(true);
    expect(leases.remove(1n, 4, orphan)).toBe(false);
    expect(orphans).toEqual(['a', 'b', 'c']);
    expect(namesOf(leases.keysOf(1n))).toEqual([]);
    leases.detach(1n, entry('a'));
  });

  test('counts the memory of leases and their labels, and releases it', () => {
    const leases = new LeaseCollection();
    for (let id = 1n; id <= 100n; id++) leases.add(lease(id, { label: 'x'.repeat(Number(id)) }));
    expect(leases.bytes).toBe(100 * 192 + 100 * 101);
    leases.replace(lease(7n, { label: 'x'.repeat(7), deadlineMs: 1 }));
    for (let id = 1n; id <= 100n; id++) leases.remove(id, undefined, () => undefined);
    expect(leases.bytes).toBe(0);
  });

  test('keeps the keys of a lease that is replaced', () => {
    const leases = new LeaseCollection();
    leases.add(lease(1n));
    leases.attach(1n, entry('a'));
    leases.replace(lease(1n, { renewIndex: 9 }));
    expect(namesOf(leases.keysOf(1n))).toEqual(['a']);
    expect(leases.get(1n)?.renewIndex).toBe(9);
  });

  test('throws when a required lease is missing', () => {
    const leases = new LeaseCollection();
    expect(() => leases.attach(5n, entry('a'))).toThrow(/lease 5 is not there/);
    expect(() => leases.replace(lease(5n))).toThrow(/lease 5 is not there/);
  });

  test('knows a key outside of some intervals, exactly, while keys come and go', () => {
    const names = Array.from({ length: 100 }, (_, i) => `k${String(i).padStart(2, '0')}`);
    const at = fc.integer({ min: 0, max: 99 });
    // Few ranges, or most keys would be outside; one that has all, and more sets than are remembered.
    const bounds = fc.array(fc.tuple(at, fc.integer({ min: 1, max: 60 })), { minLength: 1, maxLength: 4 });
    const sets = fc.array(fc.oneof(bounds, fc.constant([[0, 100] as [number, number]])), {
      minLength: 6,
      maxLength: 6,
    });
    const step = fc.record({ key: at, kind: fc.constantFrom('attach', 'detach', 'replace', 'ask', 'ask') });
    fc.assert(
      fc.property(sets, fc.array(step, { maxLength: 150, size: 'max' }), (ranges, steps) => {
        const allowed = ranges.map((set) => {
          const intervals = new IntervalSet();
          for (const [from, length] of set) intervals.add(names[from]!, names[from + length] ?? 'l');
          return intervals;
        });
        const leases = new LeaseCollection();
        leases.add(lease(1n));
        const entries = names.map(entry);
        const attached = new Set(names.slice(0, 60));
        for (const one of entries.slice(0, 60)) leases.attach(1n, one);
        for (const { key, kind } of steps) {
          const name = names[key]!;
          if (kind === 'attach') leases.attach(1n, entries[attached.add(name) && key]!);
          else if (kind === 'detach' && attached.delete(name)) leases.detach(1n, entries[key]!);
          else if (kind === 'replace') leases.replace(lease(1n, { renewIndex: key }));
          const intervals = allowed[key % allowed.length]!;
          const outside = [...attached].filter((one) => !intervals.has(one));
          const found = leases.keyOutside(1n, intervals);
          expect(found === undefined).toBe(outside.length === 0);
          if (found !== undefined) expect(outside).toContain(found);
        }
      }),
    );
  });
});
