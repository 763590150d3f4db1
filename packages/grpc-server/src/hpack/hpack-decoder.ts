import { DynamicTable, entryOverheadBytes } from './dynamic-table.ts';
import { HpackError } from './hpack-error.ts';
import { decodeHuffman } from './huffman-decoder.ts';
import type { Latin1Buffer } from './latin1-buffer.ts';
import { staticNames, staticTableLength, staticValues } from './static-table.ts';

export interface HpackDecoderLimits {
  /**
   * SETTINGS_HEADER_TABLE_SIZE of this side: how large the peer may make the dynamic table. A size below 4096 counts
   * from its acknowledgement (`setMaxTableBytes`).
   */
  readonly maxTableBytes: number;
  /** All names and values of a block, and 32 for each field. */
  readonly maxHeaderListBytes: number;
  readonly maxHeaderPairs: number;
}

type FieldListener = (name: string, value: string) => void;

/** RFC 7541 needs two: the smallest size since the last block, and the present one. Encoders that send more exist. */
const mostSizeUpdates = 4;

/** Four octets after the first have 28 bits, more than the length of any block. A fifth would only add zeros. */
const mostIntegerOctets = 4;

/** The size of a peer's table before the first settings (RFC 7540, section 6.5.2). */
const initialTableBytes = 4096;

/** Between two blocks the decoder keeps neither the last one nor its listener in memory. */
const noBytes = Buffer.alloc(0);
const passOn: FieldListener = () => {};

/**
 * Reads the header blocks of one direction of one connection, in their order. After an HpackError the connection ends:
 * the decoder is not used again.
 */
export class HpackDecoder {
  readonly #table: DynamicTable;
  readonly #maxHeaderListBytes: number;
  readonly #maxHeaderPairs: number;
  #maxTableBytes: number;
  /** The smallest limit since the last block: the next block must shrink a table that is larger. */
  #smallestMaxTableBytes: number;

  #bytes: Buffer = noBytes;
  #at = 0;
  #end = 0;

  #onField: FieldListener = passOn;
  #listBytes = 0;
  #pairs = 0;
  #isWithinLimits = true;

  constructor({ maxTableBytes, maxHeaderListBytes, maxHeaderPairs }: HpackDecoderLimits) {
    // The peer may use the initial size until it has acknowledged a smaller one.
    this.#maxTableBytes = Math.max(maxTableBytes, initialTableBytes);
    this.#smallestMaxTableBytes = this.#maxTableBytes;
    this.#maxHeaderListBytes = maxHeaderListBytes;
    this.#maxHeaderPairs = maxHeaderPairs;
    this.#table = new DynamicTable(initialTableBytes);
  }

  /**
   * Changes whenever the dynamic table, or what the next block must begin with, does. While it stays the same, equal
   * blocks have equal meanings.
   */
  get generation(): number {
    return this.#table.generation;
  }

  /** The peer has acknowledged this SETTINGS_HEADER_TABLE_SIZE. */
  setMaxTableBytes(maxTableBytes: number): void {
    this.#maxTableBytes = maxTableBytes;
    this.#smallestMaxTableBytes = Math.min(this.#smallestMaxTableBytes, maxTableBytes);
    this.#table.generation++;
  }

  /**
   * Reads the whole block in [start, end) and passes each field on in its order. False when the list of fields exceeds
   * a limit: the fields from there on are not passed on, but the block is read to its end, so that the table stays
   * right. Throws HpackError, perhaps after some fields. `onField` does not throw.
   */
  decode(bytes: Uint8Array, start: number, end: number, onField: FieldListener): boolean {
    this.#bytes = bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = start;
    this.#end = end;
    this.#onField = onField;
    this.#listBytes = 0;
    this.#pairs = 0;
    this.#isWithinLimits = true;
    this.#readSizeUpdates();
    while (this.#at < end) {
      const first = this.#bytes[this.#at++] as number;
      if (first >= 0x80) this.#readIndexed(first);
      else if (first >= 0x40) this.#readLiteral(this.#integer(first, 0x3f), true);
      else if (first >= 0x20) throw new HpackError('MisplacedSizeUpdate');
      // Never indexed or not indexed this time: a server that forwards no fields treats both alike.
      else this.#readLiteral(this.#integer(first, 0x0f), false);
    }
    this.#bytes = noBytes;
    this.#onField = passOn;
    return this.#isWithinLimits;
  }

  #readSizeUpdates(): void {
    let isDue = this.#table.maxBytes > this.#smallestMaxTableBytes;
    for (let count = 0; this.#at < this.#end; count++) {
      const first = this.#bytes[this.#at] as number;
      if (first < 0x20 || first >= 0x40) break;
      if (count === mostSizeUpdates) throw new HpackError('TooManySizeUpdates');
      this.#at++;
      const maxBytes = this.#integer(first, 0x1f);
      if (maxBytes > this.#maxTableBytes) throw new HpackError('SizeUpdateTooLarge');
      this.#table.setMaxBytes(maxBytes);
      if (maxBytes <= this.#smallestMaxTableBytes) isDue = false;
    }
    if (isDue) throw new HpackError('MissingSizeUpdate');
    this.#smallestMaxTableBytes = this.#maxTableBytes;
  }

  #readIndexed(first: number): void {
    const index = this.#integer(first, 0x7f);
    if (index === 0) throw new HpackError('BadIndex');
    if (index <= staticTableLength) {
      this.#pass(staticNames[index] as string, staticValues[index] as string);
      return;
    }
    const age = this.#ageOf(index);
    this.#pass(this.#table.nameAt(age), this.#table.valueAt(age));
  }

  /** A string is built if the list of fields or the dynamic table has room for it. */
  #readLiteral(nameIndex: number, isAdded: boolean): void {
    const listRoom = this.#isWithinLimits ? this.#maxHeaderListBytes - this.#listBytes : 0;
    const tableRoom = isAdded ? this.#table.maxBytes : 0;
    const room = Math.max(0, listRoom, tableRoom) - entryOverheadBytes;
    const name = nameIndex === 0 ? this.#string(room) : this.#nameOf(nameIndex);
    const value = this.#string(name === undefined ? 0 : room - name.length);
    if (name === undefined || value === undefined) {
      if (isAdded) this.#table.clear();
      this.#isWithinLimits = false;
      return;
    }
    if (isAdded) this.#table.add(name, value);
    this.#pass(name, value);
  }

  #nameOf(index: number): string {
    return index <= staticTableLength ? (staticNames[index] as string) : this.#table.nameAt(this.#ageOf(index));
  }

  #ageOf(index: number): number {
    const age = index - staticTableLength - 1;
    if (age >= this.#table.length) throw new HpackError('BadIndex');
    return age;
  }

  #pass(name: string, value: string): void {
    this.#listBytes += name.length + value.length + entryOverheadBytes;
    this.#pairs++;
    if (this.#listBytes > this.#maxHeaderListBytes || this.#pairs > this.#maxHeaderPairs) this.#isWithinLimits = false;
    if (this.#isWithinLimits) this.#onField(name, value);
  }

  /** The integer that begins in the low bits of `first`; `mask` has those bits. */
  #integer(first: number, mask: number): number {
    let value = first & mask;
    if (value < mask) return value;
    for (let count = 0; count < mostIntegerOctets; count++) {
      if (this.#at >= this.#end) throw new HpackError('Truncated');
      const octet = this.#bytes[this.#at++] as number;
      value += (octet & 0x7f) << (7 * count);
      if (octet < 0x80) return value;
    }
    throw new HpackError('Overflow');
  }

  /** Undefined if the string has more than `maxChars`: it is checked all the same. */
  #string(maxChars: number): string | undefined {
    if (this.#at >= this.#end) throw new HpackError('Truncated');
    const first = this.#bytes[this.#at++] as number;
    const length = this.#integer(first, 0x7f);
    const start = this.#at;
    if (length > this.#end - start) throw new HpackError('Truncated');
    this.#at = start + length;
    if (first >= 0x80) return decodeHuffman(this.#bytes, start, this.#at, Math.max(0, maxChars));
    if (length > maxChars) return undefined;
    return (this.#bytes as Latin1Buffer).latin1Slice(start, this.#at);
  }
}
