/** The bytes of a file. A gap that a write leaves reads as zeros. */
export class ByteContent {
  #buffer: Buffer;
  #length: number;

  constructor(buffer = Buffer.alloc(0)) {
    this.#buffer = buffer;
    this.#length = buffer.length;
  }

  get length(): number {
    return this.#length;
  }

  clone(): ByteContent {
    return new ByteContent(Buffer.from(this.#buffer.subarray(0, this.#length)));
  }

  write(bytes: Uint8Array, position: number): void {
    const end = position + bytes.length;
    if (end > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(end, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, position);
    this.#length = Math.max(this.#length, end);
  }

  /** Returns the number of bytes read. */
  read(target: Uint8Array, position: number): number {
    const found = this.#buffer.subarray(position, Math.min(this.#length, position + target.length));
    target.set(found);
    return found.length;
  }

  truncate(length: number): void {
    if (length < this.#length) this.#buffer.fill(0, length, this.#length);
    else this.write(Buffer.alloc(length - this.#length), this.#length);
    this.#length = length;
  }

  flipBit(bit: number): void {
    this.#buffer[bit >>> 3]! ^= 1 << (bit & 7);
  }
}
