/** A frame is a length (u32, little-endian) and so many bytes. */
export const frameHeaderBytes = 4;

/** A frame for each, in one piece. */
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

/** Cuts frames out of pieces that were cut without regard to them. */
export class FrameCutter {
  #pieces: Buffer[] = [];
  #heldBytes = 0;
  /** So many must be there before a frame can be cut. */
  #neededBytes = frameHeaderBytes;

  /** Whether every byte so far belongs to a frame that was cut. */
  get isAtEnd(): boolean {
    return this.#heldBytes === 0;
  }

  /** What the frames hold that are whole with this piece. May share its memory. */
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
