/** A frame is a length (u32, little-endian) and that many bytes. */
export const frameHeaderBytes = 4;

/** One frame per entry, in one buffer. */
export function framesOf(all: readonly Uint8Array[]): Buffer {
  const frames = Buffer.allocUnsafeSlow(all.reduce((sum, { length }) => sum + frameHeaderBytes + length, 0));
  let at = 0;
  for (const bytes of all) {
    at = frames.writeUInt32LE(bytes.length, at);
    frames.set(bytes, at);
    at += bytes.length;
  }
  return frames;
}

/** Decodes frames from chunks of any size. */
export class FrameCutter {
  #pieces: Buffer[] = [];
  #heldBytes = 0;
  /** The number of bytes needed before the next frame can be decoded. */
  #neededBytes = frameHeaderBytes;

  /** Whether every byte so far belongs to a decoded frame. */
  get isAtEnd(): boolean {
    return this.#heldBytes === 0;
  }

  /** The contents of the frames completed by this chunk. May share its memory. */
  push(piece: Buffer): Buffer[] {
    this.#pieces.push(piece);
    this.#heldBytes += piece.length;
    if (this.#heldBytes < this.#neededBytes) return [];
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    const cut: Buffer[] = [];
    let at = 0;
    this.#neededBytes = frameHeaderBytes;
    while (at + frameHeaderBytes <= bytes.length) {
      const end = at + frameHeaderBytes + bytes.readUInt32LE(at);
      if (end > bytes.length) {
        this.#neededBytes = end - at;
        break;
      }
      cut.push(bytes.subarray(at + frameHeaderBytes, end));
      at = end;
    }
    this.#pieces = at === bytes.length ? [] : [bytes.subarray(at)];
    this.#heldBytes = bytes.length - at;
    return cut;
  }
}
