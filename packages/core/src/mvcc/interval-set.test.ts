import fc from 'fast-check';
import { expect, test } from 'vitest';
import { IntervalSet } from './interval-set.ts';

const text = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\xff'), maxLength: 3 });

test('contains exactly the strings in one of its intervals', () => {
  const key = text.map((one): [string, string] => [one, `${one}\0`]);
  const intervals = fc.array(fc.oneof(fc.tuple(text, text), key), { maxLength: 20 });
  fc.assert(
    fc.property(intervals, intervals, fc.array(text, { minLength: 5 }), (some, more, texts) => {
      const set = new IntervalSet();
      for (const [from, to] of some) set.add(from, to);
      const other = new IntervalSet();
      for (const [from, to] of more) {
        if (to === `${from}\0`) other.addKey(from);
        else other.add(from, to);
      }
      set.addAll(other);
      for (const one of texts) {
        const expected = [...some, ...more].some(([from, to]) => from <= one && one < to);
        expect(set.has(one)).toBe(expected);
      }
    }),
  );
});
