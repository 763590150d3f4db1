import type { Http2Stream } from './http2-stream.ts';
import type { SessionLimits } from './session-limits.ts';
import type { SessionSender } from './session-sender.ts';
import { defaultWindowBytes, frameType } from './frame-type.ts';

/** The windows that a client has at first. They double while its data is read, up to their limits. */
const firstStreamBytes = 65_536;
const firstConnectionBytes = 1_048_576;

/**
 * What the client of one connection may send before it is read. The window of the connection is given back at once:
 * data of a paused stream is bounded by the window of the stream, and must not stop the others.
 */
export class ReceiveWindows {
  readonly initialStreamWindow: number;
  readonly #sender: SessionSender;
  readonly #maxStreamBytes: number;
  readonly #maxConnectionBytes: number;
  #window = defaultWindowBytes;
  #granted: number;
  #readBytes = 0;

  constructor(sender: SessionSender, limits: SessionLimits) {
    this.#sender = sender;
    this.#maxStreamBytes = Math.max(defaultWindowBytes, limits.streamWindowBytes);
    this.#maxConnectionBytes = Math.max(defaultWindowBytes, limits.connectionWindowBytes);
    this.initialStreamWindow = Math.min(firstStreamBytes, this.#maxStreamBytes);
    this.#granted = Math.min(firstConnectionBytes, this.#maxConnectionBytes);
  }

  /** Widens the window of the connection, which begins with HTTP/2's default. */
  grantFirst(): void {
    const more = this.#granted - this.#window;
    if (more <= 0) return;
    this.#window += more;
    this.#sender.control(frameType.windowUpdate, 0, 0, [more]);
  }

  /** A DATA frame of the connection, padding included. False when the client had no window for it. */
  arrived(bytes: number): boolean {
    this.#window -= bytes;
    if (this.#window < 0) return false;
    this.#readBytes += bytes;
    if (this.#readBytes * 2 < this.#granted) return true;
    const grown = Math.min(2 * this.#granted, this.#maxConnectionBytes);
    const more = this.#readBytes + grown - this.#granted;
    this.#granted = grown;
    this.#readBytes = 0;
    this.#window += more;
    this.#sender.control(frameType.windowUpdate, 0, 0, [more]);
    return true;
  }

  /** The same for the stream of the frame. */
  arrivedOn(stream: Http2Stream, bytes: number): boolean {
    stream.receiveWindow -= bytes;
    return stream.receiveWindow >= 0;
  }

  /** The stream has read these bytes. */
  read(stream: Http2Stream, bytes: number): void {
    stream.readBytes += bytes;
    if (stream.readBytes * 2 < stream.grantedWindow || stream.remoteEnded || stream.isClosed) return;
    const grown = Math.min(2 * stream.grantedWindow, this.#maxStreamBytes);
    const more = stream.readBytes + grown - stream.grantedWindow;
    stream.grantedWindow = grown;
    stream.readBytes = 0;
    stream.receiveWindow += more;
    this.#sender.control(frameType.windowUpdate, 0, stream.id, [more]);
  }
}
