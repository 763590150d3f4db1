import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyEntry } from '../mvcc/key-entry.ts';
import { attachKey, detachKey, visitKeys } from './attached-keys.ts';
import type { AttachedKeys } from './attached-keys.ts';

function entry(key: string): KeyEntry {
  return new KeyEntry({ key, value: '', createRevision: 1, modRevision: 1, version: 1, lease: 1n });
}

function visited(keys: AttachedKeys): KeyEntry[] {
  const found: KeyEntry[] = [];
  visitKeys(keys, (one) => found.push(one));
  return found;
}

test('is a sorted set, from empty to larger than the array form and back', () => {
  // A hundred keys in all: the set passes through each of its forms while it grows and while it shrinks.
  const change = fc.record({ key: fc.integer({ min: 0, max: 99 }), attach: fc.boolean() });
  const growing = fc.array(change, { maxLength: 300, size: 'max' });
  fc.assert(
    fc.property(growing, fc.boolean(), (changes, mostlyAttach) => {
      const entries = new Map(Array.from({ length: 100 }, (_, i) => [`k${i}`, entry(`k${i}`)]));
      const expected = new Set<string>();
      let keys: AttachedKeys;
      for (const { key, attach } of changes) {
        const one = entries.get(`k${key}`)!;
        if (attach || (mostlyAttach && key % 3 > 0)) {
          keys = attachKey(keys, one);
          expected.add(one.head.key);
        } else {
          keys = detachKey(keys, one);
          expected.delete(one.head.key);
        }
        expect(visited(keys).length).toBe(expected.size);
      }
      expect(visited(keys)).toEqual([...expected].sort().map((key) => entries.get(key)));
      for (const key of expected) keys = detachKey(keys, entries.get(key)!);
      expect(keys).toBeUndefined();
    }),
  );
});

test('stores nothing for no key and one reference for one key', () => {
  const one = entry('a');
  const keys = attachKey(undefined, one);
  expect(keys).toBe(one);
  expect(detachKey(keys, entry('a'))).toBe(one);
  expect(detachKey(keys, one)).toBeUndefined();
});
