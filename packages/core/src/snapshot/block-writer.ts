import { hashBytes } from '../mvcc/rolling-hash.ts';
import { ByteWriter } from './byte-writer.ts';
import { fullPayloadBytes, magic, maxChunkBytes } from './snapshot-format.ts';
import type { BlockKind } from './snapshot-format.ts';

/** Frames payloads as blocks and splits them into chunks. */
export class BlockWriter {
  /** Receives the records of the current block. */
  readonly payload = new ByteWriter(maxChunkBytes);
  readonly #frame = new ByteWriter(maxChunkBytes);
  #check = 0;

  /** The running hash of all blocks so far, unsigned. */
  get check(): number {
    return this.#check >>> 0;
  }

  get isFull(): boolean {
    return this.payload.length >= fullPayloadBytes;
  }

  preamble(formatVersion: number): Uint8Array {
    this.#frame.clear();
    for (let i = 0; i < magic.length; i++) this.#frame.byte(magic.charCodeAt(i));
    this.#frame.uint32(formatVersion);
    return this.#frame.written.slice();
  }

  /** Ends the block. The caller owns the returned chunks. */
  flush(kind: BlockKind): Uint8Array[] {
    const frame = this.#frame;
    const payload = this.payload.written;
    frame.clear();
    frame.uint32(payload.length);
    frame.byte(kind);
    this.#check = hashBytes(this.#check, frame.written, 0, frame.length);
    frame.uint32(this.#check >>> 0);
    this.#check = hashBytes(this.#check, payload, 0, payload.length);
    frame.bytes(payload);
    frame.uint32(this.#check >>> 0);
    this.payload.clear();
    return cut(frame.written);
  }
}

function cut(bytes: Uint8Array): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += maxChunkBytes) chunks.push(bytes.slice(at, at + maxChunkBytes));
  return chunks;
}
