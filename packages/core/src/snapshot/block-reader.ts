import { hashBytes } from '../mvcc/rolling-hash.ts';
import { ByteReader } from './byte-reader.ts';
import { SnapshotError } from './snapshot-error.ts';
import {
  blockHeaderBytes,
  blockTrailerBytes,
  formatVersion,
  formatWithoutLimits,
  magic,
  maxPayloadBytes,
  preambleBytes,
} from './snapshot-format.ts';

/** Assembles blocks from chunks of any size, checks them, and passes each to `onBlock`. */
export class BlockReader {
  readonly #onBlock: (kind: number, payload: ByteReader) => void;
  #check = 0;
  /** The bytes being collected: the preamble, then alternately a header and a payload with its trailer. */
  #part: 'preamble' | 'header' | 'body' = 'preamble';
  #bytes = new Uint8Array(preambleBytes);
  #filled = 0;
  #kind = 0;
  /** Offset of the part being collected, from the start of the snapshot. */
  #offset = 0;

  constructor(onBlock: (kind: number, payload: ByteReader) => void) {
    this.#onBlock = onBlock;
  }

  /** Whether the stream may end here. */
  get betweenBlocks(): boolean {
    return this.#part === 'header' && this.#filled === 0;
  }

  get offset(): number {
    return this.#offset + this.#filled;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      const count = Math.min(this.#bytes.length - this.#filled, chunk.length - at);
      this.#bytes.set(chunk.subarray(at, at + count), this.#filled);
      this.#filled += count;
      at += count;
      if (this.#filled === this.#bytes.length) this.#partDone();
    }
  }

  #partDone(): void {
    if (this.#part === 'preamble') this.#readPreamble();
    else if (this.#part === 'header') this.#readHeader();
    else this.#readBody();
  }

  #readPreamble(): void {
    const input = new ByteReader(this.#bytes);
    for (let i = 0; i < magic.length; i++) {
      if (input.byte() !== magic.charCodeAt(i))
        throw this.#damage('it does not begin with the magic bytes of a snapshot');
    }
    const version = input.uint32();
    if (version < formatWithoutLimits || version > formatVersion) {
      const known = `this version of Tenure reads formats up to ${formatVersion}; start a newer one`;
      throw new SnapshotError('unsupported', `the snapshot is of format ${version}, but ${known}`);
    }
    this.#expect('header', blockHeaderBytes);
  }

  #readHeader(): void {
    const input = new ByteReader(this.#bytes);
    const length = input.uint32();
    this.#kind = input.byte();
    this.#verify(5, input.uint32());
    if (length > maxPayloadBytes) throw this.#damage(`a block of ${length} bytes is longer than the maximum`);
    this.#expect('body', length + blockTrailerBytes);
  }

  #readBody(): void {
    const length = this.#bytes.length - blockTrailerBytes;
    this.#verify(length, new ByteReader(this.#bytes.subarray(length)).uint32());
    const payload = new ByteReader(this.#bytes.subarray(0, length));
    try {
      this.#onBlock(this.#kind, payload);
    } catch (error) {
      if (error instanceof SnapshotError && error.code === 'damaged') throw this.#damage(error.message);
      throw error;
    }
    this.#expect('header', blockHeaderBytes);
  }

  /** Compares the running hash, extended by the first `length` bytes of the part, with the check in the snapshot. */
  #verify(length: number, expected: number): void {
    this.#check = hashBytes(this.#check, this.#bytes, 0, length);
    if (this.#check >>> 0 !== expected) throw this.#damage('a checksum does not match');
  }

  #expect(part: 'header' | 'body', length: number): void {
    this.#offset += this.#bytes.length;
    this.#part = part;
    this.#bytes = new Uint8Array(length);
    this.#filled = 0;
  }

  #damage(reason: string): SnapshotError {
    return new SnapshotError('damaged', `the snapshot is damaged at byte ${this.#offset} or before: ${reason}`);
  }
}
