import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { int64 } from './testing/shape-arbitraries.ts';
import { DecodeError } from './decode-error.ts';
import { WireReader } from './wire-reader.ts';
import { int64Size, varintSize, writeInt64, writeVarint } from './wire-write.ts';

/** Field 20, which is unknown to a message with only the field 1. */
const groupStart = [0xa3, 0x01];
const groupEnd = [0xa4, 0x01];

function skip(...bytes: number[]): number {
  return skipAll(Buffer.from(bytes));
}

function skipAll(bytes: Buffer): number {
  const reader = new WireReader(bytes);
  while (reader.at < reader.end) reader.skipUnknown(reader.tag(), [1]);
  return reader.at;
}

function groups(depth: number): Buffer {
  const starts = Buffer.alloc(depth * groupStart.length, Buffer.from(groupStart));
  return Buffer.concat([starts, Buffer.alloc(depth * groupEnd.length, Buffer.from(groupEnd))]);
}

describe('the reader of the wire format', () => {
  test('reads every int64 that the writer writes, in as many bytes as it measured', () => {
    fc.assert(
      fc.property(int64, (value) => {
        const out = Buffer.alloc(int64Size(value));
        expect(writeInt64(out, 0, value)).toBe(out.length);
        expect(new WireReader(out).bigInt64()).toBe(value);
      }),
    );
  });

  test('reads every safe integer that the writer writes, in as many bytes as it measured', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        const out = Buffer.alloc(varintSize(value));
        expect(writeVarint(out, 0, value)).toBe(out.length);
        expect(new WireReader(out).int64()).toBe(value);
      }),
    );
  });

  test('clamps an int64 that is not a safe integer, and keeps its sign', () => {
    fc.assert(
      fc.property(int64, (value) => {
        const out = Buffer.alloc(10);
        writeInt64(out, 0, value);
        const read = new WireReader(out).int64();
        expect(Number.isSafeInteger(read)).toBe(true);
        expect(Math.sign(read)).toBe(Math.sign(Number(value)));
        if (Number.isSafeInteger(Number(value))) expect(BigInt(read)).toBe(value);
        else expect(Math.abs(read)).toBe(Number.MAX_SAFE_INTEGER);
      }),
    );
  });

  test('accepts ten bytes of a number and refuses eleven', () => {
    const nines = Array.from({ length: 9 }, () => 0xff);
    expect(new WireReader(Buffer.from([...nines, 0x7f])).bigInt64()).toBe(-1n);
    expect(() => new WireReader(Buffer.from([...nines, 0xff, 0x01])).bigInt64()).toThrow(new DecodeError('Overflow'));
    expect(() => new WireReader(Buffer.from(nines)).bigInt64()).toThrow(new DecodeError('Truncated'));
  });

  test('does not truncate a length above 2^32', () => {
    // The low 32 bits of this length are 1.
    const reader = new WireReader(Buffer.from([0x81, 0x80, 0x80, 0x80, 0x10, 0x61]));
    expect(() => reader.latin1()).toThrow(new DecodeError('Truncated'));
  });

  test('reads nothing beyond the given end', () => {
    const bytes = Buffer.from([0x02, 0x61, 0x62, 0x63]);
    expect(new WireReader(bytes, 0, 3).latin1()).toBe('ab');
    expect(() => new WireReader(bytes, 0, 2).latin1()).toThrow(new DecodeError('Truncated'));
    expect(() => new WireReader(bytes, 0, 0).int64()).toThrow(new DecodeError('Truncated'));
  });

  test('refuses text that is not UTF-8', () => {
    expect(new WireReader(Buffer.from([0x03, 0xe2, 0x82, 0xac])).utf8()).toBe('€');
    expect(() => new WireReader(Buffer.from([0x02, 0xe2, 0x82])).utf8()).toThrow(DecodeError);
    // A byte-order mark is part of the text.
    expect(new WireReader(Buffer.from([0x04, 0xef, 0xbb, 0xbf, 0x61])).utf8()).toBe('\ufeffa');
  });

  test('skips groups as deep as the limit, without recursion', () => {
    const deepest = groups(100);
    expect(skipAll(deepest)).toBe(deepest.length);
    expect(() => skipAll(groups(101))).toThrow(/max recursion depth/);
    expect(() => skipAll(groups(200_000))).toThrow(/max recursion depth/);
  });

  test('refuses groups that do not end, end twice, or end as another field', () => {
    expect(() => skip(...groupStart)).toThrow(new DecodeError('Truncated'));
    expect(() => skip(...groupEnd)).toThrow(/illegal wireType 4/);
    expect(() => skip(...groupStart, 0xac, 0x01)).toThrow(/unexpected end of group/);
  });

  test('refuses illegal tags, and known fields in a foreign wire type', () => {
    for (const tag of [0x00, 0x02, 0x06]) {
      expect(() => skip(tag, 0x01, 0x00, 0x00)).toThrow(new DecodeError('IllegalTag'));
    }
    for (const wireType of [6, 7]) {
      expect(() => skip(0xa0 | wireType, 0x01, 0x00, 0x00)).toThrow(`illegal wireType ${wireType}`);
    }
    expect(() => skip(0x08, 0x00)).toThrow(new DecodeError('WrongWireType'));
    expect(() => skip(0x80, 0x80, 0x80, 0x80, 0x10, 0x00)).toThrow(new DecodeError('Overflow'));
    expect(() => skip(0xa0, 0x81, 0x80, 0x80, 0x80, 0x00, 0x00)).toThrow(new DecodeError('Overflow'));
  });
});
