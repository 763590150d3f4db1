import { frameHeadroomBytes } from './call.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import { decompressMessage } from './message-decompressor.ts';

/**
 * Splits the bytes of one stream into messages, for any split into DATA frames. The size of a message is checked from
 * its prefix, before any of it is buffered. A message within one chunk is returned without a copy; any other is
 * collected in a buffer that grows with the received data and not with the announced length, so that five bytes cannot
 * reserve megabytes.
 *
 * Use: `push` one chunk, then call `next` until it returns undefined, then push the next chunk. After a throw the
 * stream is unusable.
 */
export class MessageReader {
  readonly #maxBytes: number;
  readonly #encoding: string | undefined;
  #chunk: Buffer = empty;
  #offset = 0;
  #compressed = false;
  /** Body bytes of the message being collected, or -1 while its prefix is incomplete. */
  #length = -1;
  #gathered: Buffer = empty;
  #gatheredBytes = 0;

  constructor(maxBytes: number, encoding: string | undefined) {
    this.#maxBytes = maxBytes;
    this.#encoding = encoding;
  }

  /** Gives the reader its next chunk. The previous one must have been read to its end. */
  push(chunk: Buffer): void {
    if (this.#offset !== this.#chunk.length) throw new Error('a chunk was pushed before the last one was read');
    this.#chunk = chunk;
    this.#offset = 0;
  }

  /** Buffered bytes: of an incomplete message, and of a chunk that has not been read to its end. */
  get heldBytes(): number {
    return this.#gatheredBytes + this.#chunk.length - this.#offset;
  }

  /** True between messages: a stream may end here. */
  get atBoundary(): boolean {
    return this.#length < 0 && this.#gatheredBytes === 0 && this.#offset === this.#chunk.length;
  }

  /** True once the prefix of a message has arrived, and not all of its body. */
  get isInBody(): boolean {
    return this.#length >= 0;
  }

  /**
   * The next message, or undefined when another chunk is needed. Throws GrpcStatus for a message that must be refused.
   */
  next(): Buffer | undefined {
    if (this.#length < 0) {
      const prefix = this.#take(frameHeadroomBytes);
      if (prefix === undefined) return undefined;
      this.#readPrefix(prefix);
    }
    const body = this.#take(this.#length);
    if (body === undefined) return undefined;
    this.#length = -1;
    return this.#compressed ? decompressMessage(body, this.#encoding, this.#maxBytes) : body;
  }

  #readPrefix(prefix: Buffer): void {
    const flag = prefix[0] ?? 0;
    const length = prefix.readUInt32BE(1);
    if (flag > 1) {
      throw new GrpcStatus(GrpcCode.internal, `grpc: received unexpected payload format ${flag}`);
    }
    if (length > this.#maxBytes) {
      const text = `grpc: received message larger than max (${length} vs. ${this.#maxBytes})`;
      throw new GrpcStatus(GrpcCode.resourceExhausted, text);
    }
    this.#compressed = flag === 1;
    this.#length = length;
  }

  /** Exactly `size` bytes, or undefined after buffering the available ones. */
  #take(size: number): Buffer | undefined {
    const available = this.#chunk.length - this.#offset;
    const missing = size - this.#gatheredBytes;
    if (this.#gatheredBytes === 0 && available >= size) {
      const taken = this.#chunk.subarray(this.#offset, this.#offset + size);
      this.#offset += size;
      return taken;
    }
    const copied = Math.min(available, missing);
    if (copied > 0) this.#gather(copied, size);
    if (copied < missing) {
      // Everything has been read. A chunk is a view of memory shared by the whole connection, which it would keep
      // alive.
      this.#chunk = empty;
      this.#offset = 0;
      return undefined;
    }
    const taken = this.#gathered.subarray(0, size);
    this.#gathered = empty;
    this.#gatheredBytes = 0;
    return taken;
  }

  #gather(count: number, size: number): void {
    const needed = this.#gatheredBytes + count;
    if (needed > this.#gathered.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(size, Math.max(needed, 2 * this.#gathered.length)));
      this.#gathered.copy(grown, 0, 0, this.#gatheredBytes);
      this.#gathered = grown;
    }
    this.#chunk.copy(this.#gathered, this.#gatheredBytes, this.#offset, this.#offset + count);
    this.#offset += count;
    this.#gatheredBytes = needed;
  }
}

const empty = Buffer.alloc(0);
