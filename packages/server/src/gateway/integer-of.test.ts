import fc from 'fast-check';
import { expect, test } from 'vitest';
import { integerOf } from './integer-of.ts';

test('every integer of 64 bits is read exactly, also with an exponent or decimals that are zeros', () => {
  const integers = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n });
  fc.assert(
    fc.property(integers, fc.nat({ max: 5 }), (value, zeros) => {
      expect(integerOf(`${value}`)).toBe(value);
      expect(integerOf(`${value}.${'0'.repeat(zeros + 1)}`)).toBe(value);
      expect(integerOf(`${value}${'0'.repeat(zeros)}e-${zeros}`)).toBe(value);
    }),
  );
});

test.each(['1.5', '15e-1', '1e', '', 'x', '01', '1a', '1-', '+1', '.5', '1e21', '1e99999999999', '1e-1'])(
  '%j is no integer of 64 bits',
  (text) => {
    expect(integerOf(text)).toBe(undefined);
  },
);

test('zero may have any exponent', () => {
  expect([integerOf('0e99999999999'), integerOf('-0'), integerOf('0.00')]).toEqual([0n, 0n, 0n]);
});

test('what follows the number after a separator is not read, as in protojson', () => {
  expect(['1 2', '1,', '1é', '3e{', '3e '].map(integerOf)).toEqual([1n, 1n, 1n, 3n, 3n]);
  expect(['3e', '3e+{', '3e_'].map(integerOf)).toEqual([undefined, undefined, undefined]);
});
