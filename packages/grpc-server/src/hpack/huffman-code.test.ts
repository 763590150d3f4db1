import { describe, expect, test } from 'vitest';
import { endOfString, huffmanCodeLengths, huffmanCodes } from './huffman-code.ts';

describe('the Huffman code', () => {
  test('is complete: the codes use up every sequence of bits', () => {
    const share = huffmanCodeLengths.reduce((sum, length) => sum + 2 ** -length, 0);
    expect(share).toBe(1);
    expect(huffmanCodeLengths).toHaveLength(257);
  });

  test('has the codes of RFC 7541', () => {
    // Some of appendix B, each of another length.
    const codes = { 0: 0x1ff8, 10: 0x3ffffffc, 48: 0x0, 95: 0x22, 122: 0x7b, 128: 0xfffe6 };
    for (const [symbol, code] of Object.entries(codes)) expect(huffmanCodes[Number(symbol)], symbol).toBe(code);
    expect(huffmanCodes[249]).toBe(0xffffffe);
    expect(huffmanCodes[255]).toBe(0x3ffffee);
    expect(huffmanCodes[endOfString]).toBe(0x3fffffff);
  });
});
