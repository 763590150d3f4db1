import { defaultWindowBytes, maxWindowBytes } from './frame-type.ts';

/** A stream with a window of its own. */
export interface WindowedStream {
  /** Its window is the initial one and this. */
  sendDelta: number;
}

/** How much data the client of one connection takes, on each stream and on all together (RFC 9113, section 6.9). */
export class SendWindows {
  connection = defaultWindowBytes;
  initial = defaultWindowBytes;
  /** No open stream has a larger delta. Unlike the streams it costs nothing to read. */
  #largestDelta = 0;

  /** The bytes of data that the stream alone may send; negative after its client has lowered the initial window. */
  ofStream(stream: WindowedStream): number {
    return this.initial + stream.sendDelta;
  }

  /** Data of the stream has been sent. */
  sent(stream: WindowedStream, bytes: number): void {
    this.connection -= bytes;
    stream.sendDelta -= bytes;
  }

  /** False when the window has become too large. */
  addToConnection(bytes: number): boolean {
    this.connection += bytes;
    return this.connection <= maxWindowBytes;
  }

  /** The same for a stream. */
  addToStream(stream: WindowedStream, bytes: number): boolean {
    stream.sendDelta += bytes;
    if (stream.sendDelta > this.#largestDelta) this.#largestDelta = stream.sendDelta;
    return this.ofStream(stream) <= maxWindowBytes;
  }

  /** The setting changes the windows of the open streams too. False when one of them has become too large. */
  setInitial(bytes: number, streams: Iterable<WindowedStream>): boolean {
    this.initial = bytes;
    if (bytes + this.#largestDelta <= maxWindowBytes) return true;
    // The stream with the largest delta may have sent data, or may be closed.
    this.#largestDelta = 0;
    for (const { sendDelta } of streams) if (sendDelta > this.#largestDelta) this.#largestDelta = sendDelta;
    return bytes + this.#largestDelta <= maxWindowBytes;
  }
}
