import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatLeaseId, parseLeaseId } from './lease-id.ts';

test('every int64 is formatted and parsed back', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (id) => {
      const text = formatLeaseId(id);
      expect(text).toMatch(/^[0-9a-f]{16}$/);
      expect(parseLeaseId(text)).toBe(id);
    }),
  );
});

test('leading zeros may be left out', () => {
  expect(parseLeaseId('a1')).toBe(161n);
  expect(parseLeaseId('ffffffffffffffff')).toBe(-1n);
});

test.each(['', 'g', '0x1', '-1', '11111111111111111'])('%j is refused', (text) =>
  expect(() => parseLeaseId(text)).toThrow('1 to 16 hex digits'),
);
