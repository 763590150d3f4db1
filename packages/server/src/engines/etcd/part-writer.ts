import { frameHeaderBytes } from './frames.ts';

/** Concatenates frames and passes them on in parts of one size, the last one shorter. */
export class PartWriter {
  readonly #buffer: Buffer;
  readonly #put: (part: Buffer, number: number) => Promise<void>;
  #buffered = 0;
  #number = 0;

  /** `put` owns the bytes until its promise settles. */
  constructor(partBytes: number, put: (part: Buffer, number: number) => Promise<void>) {
    this.#buffer = Buffer.allocUnsafeSlow(partBytes);
    this.#put = put;
  }

  async writeFrame(bytes: Uint8Array): Promise<void> {
    const header = Buffer.alloc(frameHeaderBytes);
    header.writeUInt32LE(bytes.length, 0);
    await this.#write(header);
    await this.#write(bytes);
  }

  /** Writes the rest. Returns the total size of all parts. */
  async finish(): Promise<number> {
    const total = this.#number * this.#buffer.length + this.#buffered;
    if (this.#buffered > 0) await this.#put(this.#buffer.subarray(0, this.#buffered), this.#number);
    return total;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const piece = bytes.subarray(at, at + this.#buffer.length - this.#buffered);
      this.#buffer.set(piece, this.#buffered);
      this.#buffered += piece.length;
      at += piece.length;
      if (this.#buffered < this.#buffer.length) continue;
      await this.#put(this.#buffer, this.#number++);
      this.#buffered = 0;
    }
  }
}
