import type { HeaderBlock } from './header-block.ts';
import type { HeldData } from './held-data.ts';
import type { QueuedStream, SendQueue } from './send-queue.ts';
import { errorCode } from './frame-type.ts';

/** What a stream needs of its connection. */
export interface StreamSession {
  readonly sender: StreamSender;
  readonly windows: { readonly initialStreamWindow: number };
  resetStream(stream: Http2Stream, code: number): void;
  /** Passes on what the stream held while it was paused. */
  readHeld(stream: Http2Stream): void;
}

export interface StreamSender {
  /** Sends what the stream has, as far as windows and socket allow; the rest follows when they do. */
  send(stream: Http2Stream): void;
  /** The same, at the end of the turn. */
  sendLater(stream: Http2Stream): void;
  /**
   * Headers, one message and trailers at once, if the socket and both windows have room for them now; else nothing, and
   * false. The stream has sent nothing before.
   */
  sendWhole(stream: Http2Stream, head: HeaderBlock, data: Buffer, trailers: HeaderBlock): boolean;
  /** Calls back when all that has been written until now has been taken by the socket, or the connection is over. */
  afterOutput(callback: () => void): void;
}

/** Pieces of data that wait each by itself; further ones below this size are put together, in such a buffer. */
const maxSeparate = 64;
const mostMergedBytes = 1024;
const tailBytes = 16_384;

/**
 * One stream of a connection: a call extends it, so that a call is one object. Its two directions end separately. What
 * is sent leaves in the order of the calls: headers, data, then trailers or nothing.
 *
 * The fields that are not methods are maintained by the session.
 */
export abstract class Http2Stream implements QueuedStream {
  readonly session: StreamSession;
  readonly id: number;
  /** The client has finished: no more data will arrive. */
  remoteEnded = false;
  /** The end of this side has been written. */
  localEnded = false;
  isClosed = false;
  /** Headers have been sent, or wait to be. */
  headersSent = false;
  /** The end of this side has been asked for. */
  isEnding = false;
  /** NO_ERROR while the stream has not been reset. */
  resetCode: number = errorCode.noError;
  /** Bytes of the request body that have not arrived, by its content-length; -1 without one. */
  expectedBytes = -1;
  /** The client's window is its initial window and this. */
  sendDelta = 0;
  /** What the client may still send, and what of it has been read since the last WINDOW_UPDATE. */
  receiveWindow: number;
  readBytes = 0;
  /** The window that the client is given: it grows while its data is read. */
  grantedWindow: number;
  pendingHead: HeaderBlock | undefined;
  pendingData: Buffer | undefined;
  /** Further data, after pendingData, from this index on. */
  pendingMore: Buffer[] | undefined;
  pendingMoreAt = 0;
  pendingBytes = 0;
  pendingTrailers: HeaderBlock | undefined;
  /** The memory of data that has left is counted by its writer, until `afterOutput` of the sender. */
  countsOutput = false;
  /** Data that arrived while the stream was paused. */
  heldData: HeldData | undefined;
  isReadingHeld = false;
  isPaused = false;
  hasHalfClosed = false;
  queue: SendQueue<never> | undefined = undefined;
  queuedBefore: QueuedStream | undefined = undefined;
  queuedAfter: QueuedStream | undefined = undefined;

  /** Where the last of pendingMore lies, if it is followed by room. */
  #tail: Buffer | undefined;
  #tailBytes = 0;

  constructor(session: StreamSession, id: number) {
    this.session = session;
    this.id = id;
    this.receiveWindow = session.windows.initialStreamWindow;
    this.grantedWindow = session.windows.initialStreamWindow;
  }

  get heldBytes(): number {
    return this.heldData === undefined ? 0 : this.heldData.bytes;
  }

  /** The stream has been opened by its headers; data follows in later calls. */
  abstract start(): void;

  /**
   * Data of the client, valid until the call returns. `isLast`: the client ends with it, and `halfClosed` follows at
   * once.
   */
  abstract received(chunk: Buffer, isLast: boolean): void;

  /** The client has finished sending. */
  abstract halfClosed(): void;

  /** `heldBytes` has changed. */
  abstract held(): void;

  /** Bytes of data have left for the socket: the windows had room for them. */
  abstract dataSent(bytes: number): void;

  /** All data has left: more may be sent. Called after at least one `dataSent`. */
  abstract drained(): void;

  /** The stream is over: both sides have ended, or it was reset, or the connection ended. Called once. */
  abstract streamClosed(): void;

  /** Headers, once. With `endsStream` nothing follows. */
  sendHead(head: HeaderBlock, endsStream = false): void {
    if (this.isClosed || this.headersSent) return;
    this.headersSent = true;
    this.pendingHead = head;
    if (endsStream) this.isEnding = true;
    this.session.sender.send(this);
  }

  /** Data, which must not change afterwards. After the end of the stream it is dropped. */
  sendData(data: Buffer): void {
    if (this.#add(data)) this.session.sender.send(this);
  }

  /** Data that leaves at the end of the turn, together with what else the stream writes until then. */
  sendDataLater(data: Buffer): void {
    if (this.#add(data)) this.session.sender.sendLater(this);
  }

  /** The end of this side, after all data, with trailers if there are any. */
  sendEnd(trailers?: HeaderBlock): void {
    if (this.isClosed || this.isEnding) return;
    this.isEnding = true;
    this.pendingTrailers = trailers;
    this.session.sender.send(this);
  }

  /** Ends both sides at once; what has not been sent is dropped. */
  reset(code: number): void {
    if (!this.isClosed) this.session.resetStream(this, code);
  }

  /** Stops `received` and `halfClosed`: data is held, and the client is stopped by its window. */
  pauseData(): void {
    this.isPaused = true;
  }

  /** Goes on, at once for what is held. */
  resumeData(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.session.readHeld(this);
  }

  /** For the sender: the data after pendingData. */
  takeMore(): Buffer | undefined {
    const more = this.pendingMore;
    if (more === undefined) return undefined;
    const next = more[this.pendingMoreAt];
    this.pendingMoreAt += 1;
    if (this.pendingMoreAt >= more.length) {
      this.pendingMore = undefined;
      this.pendingMoreAt = 0;
    } else if (this.pendingMoreAt > 1024) {
      this.pendingMore = more.slice(this.pendingMoreAt);
      this.pendingMoreAt = 0;
    }
    return next;
  }

  #add(data: Buffer): boolean {
    if (this.isClosed || this.isEnding || data.length === 0) return false;
    if (this.pendingData === undefined) this.pendingData = data;
    else this.#addMore(data);
    this.pendingBytes += data.length;
    return true;
  }

  /** Small messages that wait are put together when they become many: an object for each is larger than they are. */
  #addMore(data: Buffer): void {
    const more = this.pendingMore;
    if (more === undefined) {
      this.pendingMore = [data];
      this.#tail = undefined;
      return;
    }
    const tail = this.#tail;
    const end = this.#tailBytes + data.length;
    if (tail !== undefined && end <= tail.length) {
      data.copy(tail, this.#tailBytes);
      // The last one is not taken yet: else there would be no more.
      more[more.length - 1] = tail.subarray(0, end);
      this.#tailBytes = end;
    } else if (data.length < mostMergedBytes && more.length >= maxSeparate) {
      this.#tail = Buffer.allocUnsafeSlow(tailBytes);
      data.copy(this.#tail);
      more.push(this.#tail.subarray(0, data.length));
      this.#tailBytes = data.length;
    } else {
      this.#tail = undefined;
      more.push(data);
    }
  }
}
