import { SnapshotError } from './snapshot-error.ts';

/** Chars converted to a string at once; engines bound the number of arguments of a call. */
const maxCharsAtOnce = 8192;

/** Reads the records of one payload. A read beyond its end means damage. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  byte(): number {
    return this.#bytes[this.#take(1)]!;
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) break;
      scale *= 128;
      if (scale > Number.MAX_SAFE_INTEGER) throw new SnapshotError('damaged', 'an integer in it is too long');
    }
    if (value > Number.MAX_SAFE_INTEGER) throw new SnapshotError('damaged', 'an integer in it is too large');
    return value;
  }

  float64(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  /** Ids of clusters and members are unsigned, those of leases signed; the eight bytes are the same. */
  uint64(): bigint {
    return BigInt.asUintN(64, this.int64());
  }

  int64(): bigint {
    return this.#view.getBigInt64(this.#take(8), true);
  }

  latin1(): string {
    const length = this.varint();
    const start = this.#take(length);
    let text = '';
    for (let at = start; at < start + length; at += maxCharsAtOnce) {
      const piece = this.#bytes.subarray(at, Math.min(at + maxCharsAtOnce, start + length));
      // The library's types require an array of numbers; any array-like works.
      text += String.fromCharCode.apply(undefined, piece as unknown as number[]);
    }
    return text;
  }

  text(): string {
    const length = this.varint();
    if (length > this.#bytes.length - this.#at) throw new SnapshotError('damaged', 'a text in it is truncated');
    let text = '';
    for (let i = 0; i < length; i++) text += String.fromCharCode(this.varint());
    return text;
  }

  /** Returns the start of the next `count` bytes and advances past them. */
  #take(count: number): number {
    const start = this.#at;
    if (count > this.#bytes.length - start) throw new SnapshotError('damaged', 'a record in it is truncated');
    this.#at = start + count;
    return start;
  }
}

/** A count, and as many records. */
export function readList<Item>(input: ByteReader, read: (input: ByteReader) => Item): Item[] {
  const items: Item[] = [];
  for (let left = input.varint(); left > 0; left--) items.push(read(input));
  return items;
}
