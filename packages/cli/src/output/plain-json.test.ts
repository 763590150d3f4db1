import fc from 'fast-check';
import { expect, test } from 'vitest';
import { plainJson } from './plain-json.ts';

test('equals the output of JSON.stringify where that supports the value', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(plainJson(value)).toBe(JSON.stringify(value));
    }),
  );
});

test('keeps every digit of a 64-bit integer, and leaves out undefined fields', () => {
  const value = { token: 9_223_372_036_854_775_807n, list: [1n, null], nothing: undefined };
  expect(plainJson(value)).toBe('{"token":9223372036854775807,"list":[1,null]}');
});
