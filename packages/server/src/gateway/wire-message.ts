import { ByteBuffer } from './byte-buffer.ts';

const wireVarint = 0;
const wireBytes = 2;
/** Reserved for the length of a nested message until the message is complete. */
const lengthRoomBytes = 4;

/**
 * Builds the bytes of one protobuf message whose nested messages are written before their lengths are known. Room is
 * left for each length, and closed in one pass at the end: the work is linear, however deep the messages nest.
 *
 * Of a message larger than `maxBytes` only the size is kept.
 */
export class WireMessage {
  readonly #maxBytes: number;
  readonly #bytes = new ByteBuffer();
  /** The nested messages that are open, from the outside in: where their lengths go, and the size saved before. */
  readonly #open: { readonly at: number; readonly writtenBefore: number; readonly savedBefore: number }[] = [];
  /** Where all lengths go, in order. */
  #lengthsAt: number[] = [];
  /** Bytes written, with the room of lengths; and how many of them the last pass removes. */
  #written = 0;
  #saved = 0;
  #isDropped = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The size of the message without the room that its lengths do not need. */
  get size(): number {
    return this.#written - this.#saved;
  }

  get isTooLarge(): boolean {
    return this.size > this.#maxBytes;
  }

  get heldBytes(): number {
    return this.#bytes.capacity + 8 * this.#lengthsAt.length + 64 * this.#open.length;
  }

  /** Forgets everything. */
  reset(): void {
    this.#bytes.reset();
    this.#open.length = 0;
    this.#lengthsAt = [];
    this.#written = 0;
    this.#saved = 0;
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
    this.#written += value.length;
    if (this.#keeps) this.#bytes.append(value);
  }

  /** Begins a nested message, or a packed list. */
  begin(field: number): void {
    this.#varint(field * 8 + wireBytes);
    this.#open.push({ at: this.#bytes.length, writtenBefore: this.#written, savedBefore: this.#saved });
    this.#written += lengthRoomBytes;
    if (!this.#keeps) return;
    this.#lengthsAt.push(this.#bytes.length);
    this.#bytes.append(zeroLength);
  }

  end(): void {
    const opened = this.#open.pop();
    if (opened === undefined) throw new Error('a nested message ends that never began');
    const size = this.#written - opened.writtenBefore - lengthRoomBytes - (this.#saved - opened.savedBefore);
    this.#saved += lengthRoomBytes - varintBytes(size);
    if (this.#keeps) this.#bytes.view().writeUInt32LE(size, opened.at);
  }

  /** The message, which is not too large. */
  finish(): Buffer {
    const source = this.#bytes.view();
    const out = Buffer.allocUnsafe(this.size);
    let from = 0;
    let to = 0;
    for (const at of this.#lengthsAt) {
      to = copy(source, from, at, out, to);
      to = writeVarint(source.readUInt32LE(at), out, to);
      from = at + lengthRoomBytes;
    }
    copy(source, from, source.length, out, to);
    return out;
  }

  /** False once the message cannot become small enough any more, even by the room of the lengths that are open. */
  get #keeps(): boolean {
    if (this.#isDropped) return false;
    if (this.size <= this.#maxBytes + lengthRoomBytes * this.#open.length) return true;
    this.#isDropped = true;
    this.#bytes.reset();
    this.#lengthsAt = [];
    return false;
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
    this.#written += 1;
    if (this.#keeps) this.#bytes.push(byte);
  }
}

const zeroLength = Buffer.alloc(lengthRoomBytes);

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
