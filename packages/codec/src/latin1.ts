/**
 * Node's own conversions without the dispatch on an encoding's name, which costs a fifth of the whole for a short key.
 * `toString('latin1')` and `write(text, 'latin1')` call them, on every version of Node.
 */
interface Latin1Access {
  latin1Slice(start: number, end: number): string;
  latin1Write(text: string, at: number, length: number): number;
}

/**
 * Up to this length a loop is faster than the call into Node: measured on Node 20, the two are equal between 24 and 32.
 */
const longestLoopedWrite = 24;

/** The bytes in [start, end) as a string with one char per byte. The string shares no memory with the buffer. */
export function readLatin1(bytes: Buffer, start: number, end: number): string {
  return start === end ? '' : (bytes as Buffer & Latin1Access).latin1Slice(start, end);
}

/** Writes one byte per char and returns the position after the last. `out` must be large enough. */
export function writeLatin1(out: Buffer, at: number, text: string): number {
  const length = text.length;
  if (length > longestLoopedWrite) {
    (out as Buffer & Latin1Access).latin1Write(text, at, length);
  } else {
    for (let i = 0; i < length; i++) out[at + i] = text.charCodeAt(i);
  }
  return at + length;
}

/** For keys and values of generated messages, which come as bytes. Copies. */
export function latin1FromBytes(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/** For keys and values that go into generated messages. */
export function bytesFromLatin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}
