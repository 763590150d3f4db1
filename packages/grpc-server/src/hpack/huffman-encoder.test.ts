import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { huffmanCodeLengths, huffmanCodes } from './huffman-code.ts';
import { huffmanSize, writeHuffman } from './huffman-encoder.ts';
import { text } from './testing/field-arbitraries.ts';

/** The code as a text of bits, padded with ones. */
function bitsOf(value: string): string {
  const bits = Array.from(Buffer.from(value, 'latin1'), (octet) =>
    huffmanCodes[octet]?.toString(2).padStart(huffmanCodeLengths[octet] ?? 0, '0'),
  ).join('');
  return bits.padEnd(Math.ceil(bits.length / 8) * 8, '1');
}

describe('the Huffman encoder', () => {
  test('writes the codes one after the other, in as many octets as it measured', () => {
    fc.assert(
      fc.property(text, (value) => {
        const size = huffmanSize(value);
        const out = Buffer.alloc(size + 2, 0x55);
        expect(writeHuffman(out, 1, value)).toBe(size + 1);
        expect(Array.from(out.subarray(1, -1), (octet) => octet.toString(2).padStart(8, '0')).join('')).toBe(
          bitsOf(value),
        );
        expect([out[0], out.at(-1)]).toEqual([0x55, 0x55]);
      }),
    );
  });

  test('writes each octet', () => {
    const value = Buffer.from(Array.from({ length: 256 }, (_, octet) => octet)).toString('latin1');
    const out = Buffer.alloc(huffmanSize(value));
    writeHuffman(out, 0, value);
    expect(Array.from(out, (octet) => octet.toString(2).padStart(8, '0')).join('')).toBe(bitsOf(value));
  });

  test('refuses a char that is no octet', () => {
    expect(() => huffmanSize('a\u0100')).toThrow(RangeError);
  });
});
