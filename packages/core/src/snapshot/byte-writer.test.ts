import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';

const field = fc.oneof(
  fc.record({ kind: fc.constant('varint' as const), value: fc.maxSafeNat() }),
  fc.record({ kind: fc.constant('uint32' as const), value: fc.integer({ min: 0, max: 0xffffffff }) }),
  fc.record({ kind: fc.constant('float64' as const), value: fc.double({ noNaN: true }) }),
  fc.record({ kind: fc.constant('int64' as const), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
  fc.record({ kind: fc.constant('text' as const), value: fc.string({ unit: 'binary' }) }),
  fc.record({
    kind: fc.constant('latin1' as const),
    value: fc.string({
      unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
      size: 'max',
      maxLength: 300,
    }),
  }),
);

test('writes records that the reader reads back', () => {
  fc.assert(
    fc.property(fc.array(field), (fields) => {
      // Smaller than any record, so that the buffer must grow.
      const out = new ByteWriter(1);
      for (const { kind, value } of fields) (out[kind] as (value: unknown) => void)(value);
      const input = new ByteReader(out.written);
      for (const { kind, value } of fields) expect(input[kind]()).toBe(value);
      expect(input.atEnd).toBe(true);
    }),
  );
});

test('reads long strings, and nothing beyond the end', () => {
  const out = new ByteWriter(16);
  const long = 'ab\xff'.repeat(50_000);
  out.latin1(long);
  expect(new ByteReader(out.written).latin1()).toBe(long);
  expect(() => new ByteReader(out.written.subarray(0, 1000)).latin1()).toThrow(/truncated/);
  const endless = new Uint8Array(20).fill(255);
  expect(() => new ByteReader(endless).varint()).toThrow(/too l/);
  expect(() => new ByteReader(Uint8Array.of(100)).text()).toThrow(/truncated/);
});
