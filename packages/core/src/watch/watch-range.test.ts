import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rangeHolds, watchRange } from './watch-range.ts';

const bytes = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\xff'), maxLength: 3 });

test('a key is in the range exactly when it is in etcd', () => {
  fc.assert(
    fc.property(bytes, bytes, bytes, (key, rangeEnd, probe) => {
      const start = key === '' ? '\0' : key;
      const range = watchRange(key, rangeEnd);
      if (range === undefined) {
        expect(rangeEnd !== '' && rangeEnd !== '\0' && rangeEnd <= start).toBe(true);
        return;
      }
      const expected = rangeEnd === '' ? probe === start : probe >= start && (rangeEnd === '\0' || probe < rangeEnd);
      expect(rangeHolds(range, probe)).toBe(expected);
      expect(probe >= range.start && (range.end === undefined || probe < range.end)).toBe(expected);
    }),
  );
});

test('an empty key without a range end watches the smallest key and not everything', () => {
  expect(watchRange('', '')).toEqual({ start: '\0', end: '\0\0', single: true });
  expect(watchRange('', '\0')).toEqual({ start: '\0', end: undefined, single: false });
});
