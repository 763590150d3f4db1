import { ByteBuffer } from './byte-buffer.ts';

const wireVarint = 0;
const wireBytes = 2;
/** Reserved for the length of a nested message until the message is complete: enough for most. */
const lengthRoomBytes = 1;
/** The greatest length that fits into that room. */
const maxShortLength = 0x7f;

/** A nested message that is open. */
interface Opened {
  /** Where its length goes. */
  readonly at: number;
  /** The place of that length in the list of long ones. */
  readonly index: number;
  readonly sizeBefore: number;
}

/**
 * Builds the bytes of one protobuf message whose nested messages are written before their lengths are known. A length
 * of one byte is written into its room. The longer ones are inserted in one pass at the end: the work is linear,
 * however deep the messages nest, and small messages, of which there are most, cost that pass nothing.
 *
 * Of a message larger than `maxBytes` only the size is kept.
 */
export class WireMessage {
  readonly #maxBytes: number;
  readonly #bytes = new ByteBuffer();
  /** The nested messages that are open, from the outside in. */
  readonly #open: Opened[] = [];
  /** Where the lengths go that need more than their room, or may need it because their message is open; in order. */
  #longAt: number[] = [];
  /** Those lengths. */
  #long: number[] = [];
  /** Of the message so far, with one byte for each length that is not known yet. */
  #size = 0;
  #isDropped = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#size;
  }

  get isTooLarge(): boolean {
    return this.#size > this.#maxBytes;
  }

  get heldBytes(): number {
    return this.#bytes.capacity + 16 * this.#longAt.length + 64 * this.#open.length;
  }

  /** Forgets everything. */
  reset(): void {
    this.#forgetBytes();
    this.#open.length = 0;
    this.#size = 0;
    this.#isDropped = false;
  }

  /** `value`: below 2^53. */
  varint(field: number, value: number): void {
    this.#varint(field * 8 + wireVarint);
    this.#varint(value);
  }

  /** `value`: of 64 bits without a sign. */
  varint64(field: number, value: bigint): void {
    this.#varint(field * 8 + wireVarint);
    this.bareVarint64(value);
  }

  /** Without a tag: an element of a packed list. */
  bareVarint64(value: bigint): void {
    let rest = value;
    while (rest > 0x7fn) {
      this.#push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.#push(Number(rest));
  }

  bytes(field: number, value: Uint8Array): void {
    this.#varint(field * 8 + wireBytes);
    this.#varint(value.length);
    this.#size += value.length;
    if (this.#keeps) this.#bytes.append(value);
  }

  /** Begins a nested message, or a packed list. */
  begin(field: number): void {
    this.#varint(field * 8 + wireBytes);
    const at = this.#bytes.length;
    this.#size += lengthRoomBytes;
    this.#open.push({ at, index: this.#longAt.length, sizeBefore: this.#size });
    if (!this.#keeps) return;
    this.#longAt.push(at);
    this.#long.push(0);
    this.#bytes.push(0);
  }

  end(): void {
    const opened = this.#open.pop();
    if (opened === undefined) throw new Error('a nested message ends that never began');
    const length = this.#size - opened.sizeBefore;
    this.#size += varintBytes(length) - lengthRoomBytes;
    if (!this.#keeps) return;
    if (length > maxShortLength) {
      this.#long[opened.index] = length;
      return;
    }
    // Those nested in it are short too, so its length is the last of the list.
    this.#longAt.pop();
    this.#long.pop();
    this.#bytes.view()[opened.at] = length;
  }

  /** The message, which is not too large. */
  finish(): Buffer {
    const source = this.#bytes.view();
    const out = Buffer.allocUnsafe(this.#size);
    let from = 0;
    let to = 0;
    for (let i = 0; i < this.#longAt.length; i++) {
      const at = this.#longAt[i] as number;
      to = copy(source, from, at, out, to);
      to = writeVarint(this.#long[i] as number, out, to);
      from = at + lengthRoomBytes;
    }
    copy(source, from, source.length, out, to);
    return out;
  }

  /** False once the message is too large: it never becomes smaller. */
  get #keeps(): boolean {
    if (this.#isDropped) return false;
    if (this.#size <= this.#maxBytes) return true;
    this.#isDropped = true;
    this.#forgetBytes();
    return false;
  }

  #forgetBytes(): void {
    this.#bytes.reset();
    this.#longAt = [];
    this.#long = [];
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#push((rest % 0x80) | 0x80);
      rest = Math.floor(rest / 0x80);
    }
    this.#push(rest);
  }

  #push(byte: number): void {
    this.#size += 1;
    if (this.#keeps) this.#bytes.push(byte);
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}

function writeVarint(value: number, out: Buffer, to: number): number {
  let at = to;
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) out[at++] = (rest % 0x80) | 0x80;
  out[at++] = rest;
  return at;
}

/** A byte at a time where that is cheaper than a call. */
function copy(source: Buffer, from: number, until: number, out: Buffer, to: number): number {
  const bytes = until - from;
  if (bytes > 64) source.copy(out, to, from, until);
  else for (let i = 0; i < bytes; i++) out[to + i] = source[from + i] as number;
  return to + bytes;
}
