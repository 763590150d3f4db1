import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyRange } from './key-range.ts';

/** Whether the range contains `key`, as the server decides it. */
function holds(range: { key: Uint8Array; rangeEnd: Uint8Array }, key: Buffer): boolean {
  if (key.compare(range.key) < 0) return false;
  return (range.rangeEnd.length === 1 && range.rangeEnd[0] === 0) || key.compare(range.rangeEnd) < 0;
}

const text = fc.string({ unit: 'grapheme', maxLength: 4 });

test('--prefix selects exactly the keys that begin with it', () => {
  fc.assert(
    fc.property(text, text, fc.boolean(), (prefix, other, extend) => {
      const key = Buffer.from(extend ? prefix + other : other);
      fc.pre(key.length > 0);
      const range = keyRange(prefix, undefined, { prefix: true });
      expect(holds(range, key)).toBe(key.subarray(0, Buffer.byteLength(prefix)).equals(Buffer.from(prefix)));
    }),
  );
});

test('--from-key selects the key and all greater keys', () => {
  fc.assert(
    fc.property(text, text, (from, other) => {
      const key = Buffer.from(other);
      fc.pre(key.length > 0);
      expect(holds(keyRange(from, undefined, { fromKey: true }), key)).toBe(key.compare(Buffer.from(from)) >= 0);
    }),
  );
});

test('one key, and a range', () => {
  expect(keyRange('a', undefined, {})).toEqual({ key: Buffer.from('a'), rangeEnd: Buffer.from('') });
  expect(keyRange('a', 'c', {})).toEqual({ key: Buffer.from('a'), rangeEnd: Buffer.from('c') });
  // A range starts after the empty key, which the server refuses. The empty key alone is sent, so that the server
  // refuses it.
  for (const wide of [keyRange('', undefined, { prefix: true }), keyRange('', undefined, { fromKey: true })]) {
    expect(wide).toEqual({ key: Uint8Array.of(0), rangeEnd: Uint8Array.of(0) });
  }
  expect(keyRange('', 'c', {})).toEqual({ key: Uint8Array.of(0), rangeEnd: Buffer.from('c') });
  expect(keyRange('', undefined, {}).key).toHaveLength(0);
});

test('two ways to name a range exclude each other', () => {
  expect(() => keyRange('a', 'b', { prefix: true })).toThrow('exclude each other');
  expect(() => keyRange('a', undefined, { prefix: true, fromKey: true })).toThrow('exclude each other');
});
