import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HpackError } from './hpack-error.ts';
import { decodeHuffman } from './huffman-decoder.ts';
import { huffmanSize, writeHuffman } from './huffman-encoder.ts';
import { text } from './testing/field-arbitraries.ts';

const unlimited = 1 << 20;

function encoded(value: string): Buffer {
  const out = Buffer.alloc(huffmanSize(value));
  writeHuffman(out, 0, value);
  return out;
}

function decode(bytes: Buffer, maxChars = unlimited): string | undefined {
  return decodeHuffman(bytes, 0, bytes.length, maxChars);
}

describe('the Huffman decoder', () => {
  test('reads what the encoder writes, and nothing outside the given part', () => {
    fc.assert(
      fc.property(text, (value) => {
        const bytes = Buffer.concat([Buffer.alloc(2), encoded(value), Buffer.alloc(2)]);
        expect(decodeHuffman(bytes, 2, bytes.length - 2, unlimited)).toBe(value);
      }),
    );
  });

  test('reads any bytes or refuses them, and what it reads has these bytes as its code', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (octets) => {
        const bytes = Buffer.from(octets);
        let value: string | undefined;
        try {
          value = decode(bytes);
        } catch (error) {
          expect(error).toEqual(new HpackError('BadHuffman'));
          return;
        }
        expect(encoded(value ?? '')).toEqual(bytes);
      }),
      { numRuns: 1000 },
    );
  });

  test('builds no string above the limit, and still checks it', () => {
    const long = 'a'.repeat(100);
    expect(decode(encoded(long), 100)).toBe(long);
    expect(decode(encoded(long), 99)).toBeUndefined();
    expect(decode(encoded(long), 0)).toBeUndefined();
    expect(() => decode(Buffer.concat([encoded(long), Buffer.of(0xff)]), 0)).toThrow(new HpackError('BadHuffman'));
  });

  test('reads a string that is larger than the memory it keeps', () => {
    const long = '0'.repeat(300_000);
    expect(decode(encoded(long))).toBe(long);
  });

  test.each([
    ['padding of eight ones', [0xff]],
    ['padding of zeros', [0x18]],
    ['a code cut off', [0xff, 0xc0]],
    ['the code of the end of strings', [0xff, 0xff, 0xff, 0xff]],
  ])('refuses %s', (_, octets) => {
    expect(() => decode(Buffer.from(octets))).toThrow(new HpackError('BadHuffman'));
  });

  test('accepts padding of seven ones and an empty string', () => {
    // '!' has ten bits, 'a' five, and so '!aaa' ends after the first bit of an octet.
    expect(encoded('!aaa').at(-1)).toBe(0xff);
    expect(decode(encoded('!aaa'))).toBe('!aaa');
    expect(decode(Buffer.alloc(0))).toBe('');
  });
});
