import { huffmanCodeLengths, huffmanCodes } from './huffman-code.ts';

const longestOctet = 0xff;

/** Longer codes are written in two pieces: with up to seven bits that wait, 32 bits would be too few. */
const longestPieceBits = 24;
const lowPieceBits = 16;

/** The number of octets that `text` has in Huffman code. A RangeError if a char of it is no octet. */
export function huffmanSize(text: string): number {
  let bits = 0;
  let seen = 0;
  for (let at = 0; at < text.length; at++) {
    const octet = text.charCodeAt(at);
    seen |= octet;
    bits += huffmanCodeLengths[octet & longestOctet] as number;
  }
  if (seen > longestOctet) throw new RangeError('a header field holds a char that is no octet');
  return Math.ceil(bits / 8);
}

/** Writes `text` in Huffman code and returns the position after it. `out` has room for it. */
export function writeHuffman(out: Buffer, offset: number, text: string): number {
  let at = offset;
  let waiting = 0;
  let waitingBits = 0;
  for (let position = 0; position < text.length; position++) {
    const octet = text.charCodeAt(position);
    let code = huffmanCodes[octet] as number;
    let bits = huffmanCodeLengths[octet] as number;
    if (bits > longestPieceBits) {
      bits -= lowPieceBits;
      waiting = (waiting << bits) | (code >>> lowPieceBits);
      waitingBits += bits;
      for (; waitingBits >= 8; at++) {
        waitingBits -= 8;
        out[at] = waiting >>> waitingBits;
      }
      code &= (1 << lowPieceBits) - 1;
      bits = lowPieceBits;
    }
    waiting = (waiting << bits) | code;
    waitingBits += bits;
    for (; waitingBits >= 8; at++) {
      waitingBits -= 8;
      out[at] = waiting >>> waitingBits;
    }
  }
  if (waitingBits === 0) return at;
  const paddingBits = 8 - waitingBits;
  out[at] = (waiting << paddingBits) | ((1 << paddingBits) - 1);
  return at + 1;
}
