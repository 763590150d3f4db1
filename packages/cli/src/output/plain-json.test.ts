import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plainJson } from './plain-json.ts';

test('is what JSON.stringify gives where that can', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(plainJson(value)).toBe(JSON.stringify(value));
    }),
  );
});

test('keeps every digit of a 64-bit integer, and leaves out what is not there', () => {
  const value = { token: 9_223_372_036_854_775_807n, list: [1n, null], nothing: undefined };
  expect(plainJson(value)).toBe('{"token":9223372036854775807,"list":[1,null]}');
});
