const prefixBytes = 5;

/** Puts gRPC's prefix (not compressed, length) before a message. */
export function frame(message: Buffer): Buffer {
  const framed = Buffer.alloc(prefixBytes + message.length);
  framed.writeUInt32BE(message.length, 1);
  message.copy(framed, prefixBytes);
  return framed;
}

/** Splits a stream of bytes into messages. A message is valid only during the call of `onMessage`. */
export class FrameReader {
  #pending: Buffer = Buffer.alloc(0);
  readonly #onMessage: (message: Buffer) => void;

  constructor(onMessage: (message: Buffer) => void) {
    this.#onMessage = onMessage;
  }

  push(chunk: Buffer): void {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    let at = 0;
    while (bytes.length - at >= prefixBytes) {
      const end = at + prefixBytes + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      if (bytes[at] !== 0) throw new Error('a reply is compressed without a request for it');
      this.#onMessage(bytes.subarray(at + prefixBytes, end));
      at = end;
    }
    this.#pending = bytes.subarray(at);
  }
}
