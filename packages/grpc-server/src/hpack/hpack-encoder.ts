import { DynamicTable, entryOverheadBytes } from './dynamic-table.ts';
import { huffmanSize, writeHuffman } from './huffman-encoder.ts';
import { staticTableByName, staticTableLength } from './static-table.ts';

/**
 * - index: the field enters the dynamic table, so that later blocks have it as one index.
 * - plain: it does not, for a value that hardly returns.
 * - never: neither here nor in a proxy, for a secret whose length must not tell what it is.
 */
export type IndexingMode = 'index' | 'plain' | 'never';

export type EncodedField = readonly [name: string, value: string, mode?: IndexingMode];

/** The table's size before the peer's first settings, and the largest one that this encoder uses. */
const mostTableBytes = 4096;

/** Two sizes of at most 4096, each of three octets. */
const mostSizeUpdateBytes = 6;

/** The first octet, an index, and the lengths of two strings. */
const mostFieldOverheadBytes = 16;

/** Up to this length a loop is faster than the call into Node. */
const longestLoopedWrite = 24;

/** The newest entries of the dynamic table with one name. */
interface DynamicName {
  number: number;
  readonly numberByValue: Map<string, number>;
}

/**
 * Writes the header blocks of one direction of one connection, in the order in which they are sent. A block is
 * `beginBlock` and then `writeField` for each field, or `encode` for all. Strings have one char per octet.
 *
 * A caller may send the bytes of a block again if `generation` was the same before and after it was written, and still
 * is.
 */
export class HpackEncoder {
  readonly #table: DynamicTable;
  readonly #byName = new Map<string, DynamicName>();
  /** What the peer's table has, as of the last block. */
  #announcedTableBytes = mostTableBytes;
  /** The smallest size of the table since the last block. */
  #smallestTableBytes = mostTableBytes;

  constructor() {
    this.#table = new DynamicTable(mostTableBytes, (name, value, number) => this.#forget(name, value, number));
  }

  /** Changes with the dynamic table, and with each size update that a block begins with. */
  get generation(): number {
    return this.#table.generation;
  }

  /** The room that a field needs at most. */
  static fieldBytesMax(name: string, value: string): number {
    return name.length + value.length + mostFieldOverheadBytes;
  }

  /** The room that the start of a block needs at most. */
  static readonly blockStartBytesMax = mostSizeUpdateBytes;

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. The next block announces the new size of the table. */
  setPeerTableBytes(bytes: number): void {
    const tableBytes = Math.min(bytes, mostTableBytes);
    this.#smallestTableBytes = Math.min(this.#smallestTableBytes, tableBytes);
    if (tableBytes !== this.#table.maxBytes) this.#table.setMaxBytes(tableBytes);
  }

  /** Writes the size updates that are due. Returns the position after them. */
  beginBlock(target: Buffer, offset: number): number {
    const tableBytes = this.#table.maxBytes;
    const smallest = this.#smallestTableBytes;
    if (tableBytes === this.#announcedTableBytes && smallest === tableBytes) return offset;
    checkRoom(target, offset, HpackEncoder.blockStartBytesMax);
    let at = offset;
    if (smallest < tableBytes && smallest < this.#announcedTableBytes)
      at = writeInteger(target, at, 0x20, 0x1f, smallest);
    at = writeInteger(target, at, 0x20, 0x1f, tableBytes);
    this.#announcedTableBytes = tableBytes;
    this.#smallestTableBytes = tableBytes;
    this.#table.generation++;
    return at;
  }

  /**
   * Writes one field and returns the position after it. Throws a RangeError, and changes nothing, if `target` has less
   * room than `fieldBytesMax`, or if a char is no octet. The fields before it are in the table: they are sent even so.
   */
  writeField(target: Buffer, offset: number, name: string, value: string, mode: IndexingMode = 'index'): number {
    checkRoom(target, offset, HpackEncoder.fieldBytesMax(name, value));
    const inStatic = staticTableByName.get(name);
    const inDynamic = this.#byName.get(name);
    if (mode !== 'never') {
      const index = inStatic?.indexByValue.get(value) ?? this.#indexOf(inDynamic?.numberByValue.get(value));
      if (index !== undefined) return writeInteger(target, offset, 0x80, 0x7f, index);
    }
    const nameIndex = inStatic?.index ?? this.#indexOf(inDynamic?.number) ?? 0;
    const nameSize = nameIndex === 0 ? huffmanSize(name) : 0;
    const valueSize = huffmanSize(value);
    // An entry that is larger than the table would only empty it.
    const isAdded = mode === 'index' && name.length + value.length + entryOverheadBytes <= this.#table.maxBytes;
    let at = isAdded
      ? writeInteger(target, offset, 0x40, 0x3f, nameIndex)
      : writeInteger(target, offset, mode === 'never' ? 0x10 : 0, 0x0f, nameIndex);
    if (nameIndex === 0) at = writeString(target, at, name, nameSize);
    at = writeString(target, at, value, valueSize);
    if (isAdded) this.#add(name, value);
    return at;
  }

  /** A block in a buffer of its own. Throws a RangeError, and changes nothing, if a char is no octet. */
  encode(fields: readonly EncodedField[]): Buffer {
    let room = HpackEncoder.blockStartBytesMax;
    for (const [name, value] of fields) {
      checkOctets(name);
      checkOctets(value);
      room += HpackEncoder.fieldBytesMax(name, value);
    }
    const target = Buffer.allocUnsafe(room);
    let at = this.beginBlock(target, 0);
    for (const [name, value, mode] of fields) at = this.writeField(target, at, name, value, mode);
    return target.subarray(0, at);
  }

  #indexOf(number: number | undefined): number | undefined {
    return number === undefined ? undefined : staticTableLength + this.#table.nextNumber - number;
  }

  #add(name: string, value: string): void {
    this.#table.add(name, value);
    const number = this.#table.nextNumber - 1;
    const known = this.#byName.get(name);
    if (known === undefined) {
      this.#byName.set(name, { number, numberByValue: new Map([[value, number]]) });
      return;
    }
    known.number = number;
    known.numberByValue.set(value, number);
  }

  /** The newest entry with a name is the last to leave. */
  #forget(name: string, value: string, number: number): void {
    const known = this.#byName.get(name);
    if (known?.number === number) this.#byName.delete(name);
    else if (known?.numberByValue.get(value) === number) known.numberByValue.delete(value);
  }
}

function checkRoom(target: Buffer, offset: number, bytes: number): void {
  if (target.length - offset < bytes) throw new RangeError('the header block has less room than its fields may need');
}

const otherThanOctets = /[\u0100-\uffff]/;

function checkOctets(text: string): void {
  if (otherThanOctets.test(text)) throw new RangeError('a header field holds a char that is no octet');
}

/** `mask`: the bits of the first octet that the integer may use; `pattern`: its other bits. */
function writeInteger(target: Buffer, offset: number, pattern: number, mask: number, value: number): number {
  if (value < mask) {
    target[offset] = pattern | value;
    return offset + 1;
  }
  target[offset] = pattern | mask;
  let at = offset + 1;
  let left = value - mask;
  for (; left >= 0x80; left >>>= 7) target[at++] = (left & 0x7f) | 0x80;
  target[at] = left;
  return at + 1;
}

/** In Huffman code where that is shorter. */
function writeString(target: Buffer, offset: number, text: string, huffmanBytes: number): number {
  if (huffmanBytes < text.length) {
    return writeHuffman(target, writeInteger(target, offset, 0x80, 0x7f, huffmanBytes), text);
  }
  const at = writeInteger(target, offset, 0, 0x7f, text.length);
  if (text.length > longestLoopedWrite) {
    target.write(text, at, 'latin1');
  } else {
    for (let i = 0; i < text.length; i++) target[at + i] = text.charCodeAt(i);
  }
  return at + text.length;
}
