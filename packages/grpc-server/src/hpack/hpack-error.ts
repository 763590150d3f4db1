/**
 * - Truncated: the block ends inside a field.
 * - Overflow: an integer has more octets than any table or string needs.
 * - BadIndex: an index names no entry of either table.
 * - BadHuffman: a string holds the code of the end of strings, or its padding is too long or is not all ones.
 * - MisplacedSizeUpdate: a change of the table's size follows a field.
 * - TooManySizeUpdates: a block begins with more changes of the table's size than any encoder needs.
 * - SizeUpdateTooLarge: the table would be larger than the settings allow.
 * - MissingSizeUpdate: the settings allow only a smaller table than the encoder's, and the block did not shrink it.
 */
export type HpackErrorCode =
  | 'Truncated'
  | 'Overflow'
  | 'BadIndex'
  | 'BadHuffman'
  | 'MisplacedSizeUpdate'
  | 'TooManySizeUpdates'
  | 'SizeUpdateTooLarge'
  | 'MissingSizeUpdate';

const explanations: Readonly<Record<HpackErrorCode, string>> = {
  Truncated: 'the header block ends inside a field',
  Overflow: 'an integer of the header block is too long',
  BadIndex: 'an index of the header block names no entry',
  BadHuffman: 'a string of the header block is not valid Huffman code',
  MisplacedSizeUpdate: 'a size update stands after a field of the header block',
  TooManySizeUpdates: 'the header block has too many size updates',
  SizeUpdateTooLarge: 'a size update exceeds the table size of the settings',
  MissingSizeUpdate: 'the header block lacks the size update that the settings require',
};

/** The connection cannot go on: COMPRESSION_ERROR of HTTP/2. The two tables may differ from here on. */
export class HpackError extends Error {
  readonly code: HpackErrorCode;

  constructor(code: HpackErrorCode) {
    super(explanations[code]);
    this.name = 'HpackError';
    this.code = code;
  }
}
