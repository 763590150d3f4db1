import { HpackEncoder } from '../hpack/hpack-encoder.ts';
import type { HeaderBlock } from './header-block.ts';

interface EncodedBlock {
  readonly generation: number;
  readonly bytes: Buffer;
}

/** Encodes the header blocks of one connection, and remembers the bytes of frequent ones while they mean the same. */
export class HeaderBlockEncoder {
  readonly #encoder = new HpackEncoder();
  readonly #encoded: (EncodedBlock | undefined)[] = [];

  setPeerTableBytes(bytes: number): void {
    this.#encoder.setPeerTableBytes(bytes);
  }

  encode(block: HeaderBlock): Buffer {
    const { slot } = block;
    if (slot < 0) return this.#encoder.encode(block.fields);
    const known = this.#encoded[slot];
    if (known !== undefined && known.generation === this.#encoder.generation) return known.bytes;
    const { generation } = this.#encoder;
    const bytes = this.#encoder.encode(block.fields);
    // Bytes that changed the dynamic table mean something else the next time.
    if (generation === this.#encoder.generation) this.#encoded[slot] = { generation, bytes };
    return bytes;
  }
}
