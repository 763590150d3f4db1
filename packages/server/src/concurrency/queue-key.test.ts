import { expect, test } from 'vitest';
import { queueKey, queueOf } from './queue-key.ts';

test('a queue has all keys below a name, and none of another name that begins with it', () => {
  const { key, rangeEnd } = queueOf(Buffer.from('a\xff', 'latin1'));
  const isIn = (text: string): boolean => {
    const bytes = Buffer.from(text, 'latin1');
    return Buffer.compare(bytes, key) >= 0 && Buffer.compare(bytes, rangeEnd) < 0;
  };
  expect(['a\xff/', 'a\xff/1', 'a\xff/b/1', 'a\xff/\xff'].map(isIn)).toEqual([true, true, true, true]);
  expect(['a\xff', 'a\xff.', 'a\xff0', 'a\xff\xff/1', 'a/1'].map(isIn)).toEqual([false, false, false, false, false]);
});

test('the key of a lease ends in its id in hexadecimal, as Go writes 64 bits with a sign', () => {
  const keyOf = (lease: bigint): string => queueKey(queueOf(Buffer.from('n')), lease).toString('latin1');
  expect(keyOf(0x694d_71dd_af9b_d20fn)).toBe('n/694d71ddaf9bd20f');
  expect(keyOf(-1n)).toBe('n/-1');
  expect(keyOf(-(2n ** 63n))).toBe('n/-8000000000000000');
});
