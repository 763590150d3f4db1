const firstBytes = 256;
/** A larger buffer is not kept after a reset. */
const keptBytes = 64 * 1024;

/** Bytes that are appended to, in one buffer that grows by doubling. */
export class ByteBuffer {
  #bytes: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The memory that it holds. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** Valid until the next change. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  reset(): void {
    this.#length = 0;
    if (this.#bytes.length > keptBytes) this.#bytes = Buffer.alloc(0);
  }

  push(byte: number): void {
    this.reserve(1);
    this.#bytes[this.#length++] = byte;
  }

  append(source: Uint8Array, from = 0, to = source.length): void {
    this.reserve(to - from);
    this.#bytes.set(from === 0 && to === source.length ? source : source.subarray(from, to), this.#length);
    this.#length += to - from;
  }

  pushCodePoint(point: number): void {
    if (point < 0x80) {
      this.push(point);
      return;
    }
    this.append(Buffer.from(String.fromCodePoint(point)));
  }

  reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(firstBytes, needed, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
