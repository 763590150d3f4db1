import { frameHeadBytes } from './frame-type.ts';

export interface FrameSink {
  /**
   * One frame: its payload is bytes[start, end), valid until the call returns. May call `stop`: the frames after it are
   * then kept.
   */
  frame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): void;
  /** A frame announces a larger payload than is allowed. Nothing is read from then on. */
  frameTooLarge(): void;
}

/**
 * Finds frames in what a socket delivers. A frame within one chunk is read where it lies; one that spans chunks is
 * collected in a buffer of its own size, which grows with what arrives and not with what was announced.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #maxPayloadBytes: number;
  /** Bytes at the start that are skipped: the preface, which was checked before. */
  #skipBytes: number;
  #chunk: Buffer = empty;
  #at = 0;
  /** Chunks that arrived while the reader was stopped. */
  #later: Buffer[] = [];
  /** The beginning of a frame that spans chunks. */
  #partial: Buffer = empty;
  #partialBytes = 0;
  #isStopped = false;
  #isReading = false;

  constructor(sink: FrameSink, maxPayloadBytes: number, skipBytes: number) {
    this.#sink = sink;
    this.#maxPayloadBytes = maxPayloadBytes;
    this.#skipBytes = skipBytes;
  }

  /** Memory of frames that have not been passed on. */
  get heldBytes(): number {
    let later = 0;
    for (const chunk of this.#later) later += chunk.length;
    return this.#partial.length + this.#chunk.length - this.#at + later;
  }

  /** True in the middle of a frame. */
  get isPartial(): boolean {
    return this.#partialBytes > 0;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  push(chunk: Buffer): void {
    if (this.#isStopped || this.#isReading) {
      this.#later.push(chunk);
      return;
    }
    this.#chunk = chunk;
    this.#at = 0;
    this.#read();
  }

  /** Passes no more frames on until `resume`, from within `frame` as well. */
  stop(): void {
    this.#isStopped = true;
  }

  resume(): void {
    this.#isStopped = false;
    if (!this.#isReading) this.#read();
  }

  /** Drops everything, now and from now on. */
  close(): void {
    this.#isStopped = true;
    this.#chunk = empty;
    this.#at = 0;
    this.#later = [];
    this.#partial = empty;
    this.#partialBytes = 0;
  }

  #read(): void {
    this.#isReading = true;
    try {
      for (;;) {
        this.#readChunk();
        if (this.#isStopped) return;
        const next = this.#later.shift();
        this.#chunk = next ?? empty;
        this.#at = 0;
        if (next === undefined) return;
      }
    } finally {
      this.#isReading = false;
    }
  }

  #readChunk(): void {
    if (this.#skipBytes > 0) {
      const skipped = Math.min(this.#skipBytes, this.#chunk.length - this.#at);
      this.#skipBytes -= skipped;
      this.#at += skipped;
    }
    while (!this.#isStopped && this.#at < this.#chunk.length) {
      if (this.#partialBytes > 0) {
        this.#continuePartial();
        continue;
      }
      const chunk = this.#chunk;
      const at = this.#at;
      const available = chunk.length - at;
      const payloadBytes = available < frameHeadBytes ? 0 : payloadLength(chunk, at);
      if (payloadBytes > this.#maxPayloadBytes) {
        this.#sink.frameTooLarge();
        return;
      }
      const frameBytes = frameHeadBytes + payloadBytes;
      if (available < frameBytes) {
        this.#collect(available);
        return;
      }
      this.#at = at + frameBytes;
      this.#pass(chunk, at, at + frameBytes);
    }
  }

  #continuePartial(): void {
    if (this.#partialBytes < frameHeadBytes) {
      this.#collect(Math.min(frameHeadBytes - this.#partialBytes, this.#chunk.length - this.#at));
      if (this.#partialBytes < frameHeadBytes) return;
    }
    const payloadBytes = payloadLength(this.#partial, 0);
    if (payloadBytes > this.#maxPayloadBytes) {
      this.#sink.frameTooLarge();
      return;
    }
    const frameBytes = frameHeadBytes + payloadBytes;
    this.#collect(Math.min(frameBytes - this.#partialBytes, this.#chunk.length - this.#at));
    if (this.#partialBytes < frameBytes) return;
    const frame = this.#partial;
    this.#partial = empty;
    this.#partialBytes = 0;
    this.#pass(frame, 0, frameBytes);
  }

  #pass(bytes: Buffer, start: number, end: number): void {
    const streamId = readUint31(bytes, start + 5);
    this.#sink.frame(bytes[start + 3]!, bytes[start + 4]!, streamId, bytes, start + frameHeadBytes, end);
  }

  /** Copies the next bytes of the chunk to the frame that spans chunks. */
  #collect(count: number): void {
    const needed = this.#partialBytes + count;
    if (needed > this.#partial.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#partial.length, minimumPartialBytes));
      this.#partial.copy(grown, 0, 0, this.#partialBytes);
      this.#partial = grown;
    }
    this.#chunk.copy(this.#partial, this.#partialBytes, this.#at, this.#at + count);
    this.#at += count;
    this.#partialBytes = needed;
  }
}

const minimumPartialBytes = 64;
const empty = Buffer.alloc(0);

function payloadLength(bytes: Buffer, at: number): number {
  return (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
}

/** A stream id, or the increment of a window: 31 bits, without the reserved one. */
export function readUint31(bytes: Buffer, at: number): number {
  return ((bytes[at]! & 0x7f) << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}
