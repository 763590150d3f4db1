import { frameHeadBytes } from './frame-type.ts';

/** Small frames are written one after the other into slabs of this size. */
const slabBytes = 16_384;
/** Slabs that are kept for the next turn, for all connections together. */
const maxFreeSlabs = 64;
/** A payload of at least this size is passed to the socket as it is; a smaller one is cheaper to copy. */
export const minReferencedBytes = 4096;

const freeSlabs: Buffer[] = [];

/** The bytes of one write, and the memory that they keep until the socket has taken them. */
export interface OutputBatch {
  readonly parts: readonly Buffer[];
  readonly slabs: readonly Buffer[];
  readonly bytes: number;
  readonly heldBytes: number;
}

/** The frames that a connection has written since its last write to the socket. */
export class OutputBuffer {
  #slab: Buffer | undefined;
  #start = 0;
  #at = 0;
  #parts: Buffer[] = [];
  #slabs: Buffer[] = [];
  /** Bytes of the finished parts. */
  #partBytes = 0;
  #referencedBytes = 0;

  get bytes(): number {
    return this.#partBytes + this.#at - this.#start;
  }

  /** The memory of what has not been taken. */
  get heldBytes(): number {
    return (this.#slabs.length + (this.#slab === undefined ? 0 : 1)) * slabBytes + this.#referencedBytes;
  }

  /** Writes the head of a frame. */
  head(type: number, flags: number, streamId: number, payloadBytes: number): void {
    const slab = this.#room(frameHeadBytes);
    const at = this.#at;
    slab[at] = payloadBytes >>> 16;
    slab[at + 1] = payloadBytes >>> 8;
    slab[at + 2] = payloadBytes;
    slab[at + 3] = type;
    slab[at + 4] = flags;
    writeUint32(slab, at + 5, streamId);
    this.#at = at + frameHeadBytes;
  }

  uint32(value: number): void {
    const slab = this.#room(4);
    writeUint32(slab, this.#at, value);
    this.#at += 4;
  }

  uint16(value: number): void {
    const slab = this.#room(2);
    slab[this.#at] = value >>> 8;
    slab[this.#at + 1] = value;
    this.#at += 2;
  }

  /**
   * Appends bytes, by reference if they are many: they must not change until the socket has taken them. `isCounted`:
   * such bytes are memory of this output, and not of the caller.
   */
  bytesOf(source: Buffer, start: number, end: number, isCounted = true): void {
    const count = end - start;
    if (count >= minReferencedBytes) {
      this.#finishPart();
      this.#parts.push(start === 0 && end === source.length ? source : source.subarray(start, end));
      this.#partBytes += count;
      if (isCounted) this.#referencedBytes += count;
      return;
    }
    const slab = this.#room(count);
    if (count < 32) {
      let at = this.#at;
      for (let from = start; from < end; from++) slab[at++] = source[from]!;
    } else {
      source.copy(slab, this.#at, start, end);
    }
    this.#at += count;
  }

  /** All that was written since the last call, or undefined. */
  take(): OutputBatch | undefined {
    this.#finishPart();
    if (this.#parts.length === 0) return undefined;
    if (this.#slab !== undefined) {
      this.#slabs.push(this.#slab);
      this.#slab = undefined;
    }
    const batch = {
      parts: this.#parts,
      slabs: this.#slabs,
      bytes: this.#partBytes,
      heldBytes: this.#slabs.length * slabBytes + this.#referencedBytes,
    };
    this.#parts = [];
    this.#slabs = [];
    this.#partBytes = 0;
    this.#referencedBytes = 0;
    this.#start = 0;
    this.#at = 0;
    return batch;
  }

  #finishPart(): void {
    if (this.#slab === undefined || this.#at === this.#start) return;
    this.#parts.push(this.#slab.subarray(this.#start, this.#at));
    this.#partBytes += this.#at - this.#start;
    this.#start = this.#at;
  }

  /** The slab with room for `count` bytes at `#at`. */
  #room(count: number): Buffer {
    if (this.#slab !== undefined) {
      if (this.#at + count <= slabBytes) return this.#slab;
      this.#finishPart();
      this.#slabs.push(this.#slab);
    }
    this.#slab = freeSlabs.pop() ?? Buffer.allocUnsafeSlow(slabBytes);
    this.#start = 0;
    this.#at = 0;
    return this.#slab;
  }
}

/** The socket has taken a batch: its slabs serve the next. */
export function releaseSlabs(slabs: readonly Buffer[]): void {
  for (const slab of slabs) if (freeSlabs.length < maxFreeSlabs) freeSlabs.push(slab);
}

function writeUint32(target: Buffer, at: number, value: number): void {
  target[at] = value >>> 24;
  target[at + 1] = value >>> 16;
  target[at + 2] = value >>> 8;
  target[at + 3] = value;
}
