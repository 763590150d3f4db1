import { expect, test } from 'vitest';
import { parseTxn } from './parse-txn.ts';

const conditions = 'mod("a") = "0"\nversion("b") < "3"';

test.each([
  ['', [0, 0, 0]],
  [conditions, [2, 0, 0]],
  [`${conditions}\n`, [2, 0, 0]],
  [`${conditions}\n\nput a 1`, [2, 1, 0]],
  ['\nput a 1\nget a\n', [0, 2, 0]],
  ['\n\ndel a', [0, 0, 1]],
  [`${conditions}\n\nput a 1\n\nget a\n\nwhatever follows`, [2, 1, 1]],
])('%j is split into parts at empty lines', (text, counts) => {
  const { compare, success, failure } = parseTxn(text);
  expect([compare, success, failure].map((part) => part.length)).toEqual(counts);
});
