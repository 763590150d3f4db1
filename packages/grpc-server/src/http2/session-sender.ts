import type { Socket } from 'node:net';
import { flushLater } from './flush-turn.ts';
import type { HeaderBlock } from './header-block.ts';
import { HeaderBlockEncoder } from './header-block-encoder.ts';
import type { Http2Stream, StreamSender } from './http2-stream.ts';
import { type OutputBatch, OutputBuffer, releaseSlabs } from './output-buffer.ts';
import type { PingPolicy } from './ping-policy.ts';
import { removeFromQueue, SendQueue } from './send-queue.ts';
import { flag, frameType, maxFrameBytes } from './frame-type.ts';
import { SendWindows } from './send-windows.ts';

/** Data of one stream that is sent before the next stream has its turn. */
const quantumBytes = maxFrameBytes;

export interface SenderOptions {
  readonly socket: Socket;
  readonly maxOutputBytes: number;
  readonly maxUnreadControlFrames: number;
  readonly pings: PingPolicy;
  /** Memory for frames that wait for the socket, from one turn to the next; negative when it is free. */
  readonly onHeld: (bytes: number) => void;
  /** The client does not read the answers to its control frames. */
  readonly onUnreadControlFrames: () => void;
  /** Both sides of a stream have ended. */
  readonly onStreamEnded: (stream: Http2Stream) => void;
  /** Everything has been taken by the socket. */
  readonly onIdle: () => void;
}

/**
 * The sending half of a connection. Frames are written to a buffer, which goes to the socket once in each turn of the
 * event loop. While the socket has not taken the last write, no more than `maxOutputBytes` are added: streams wait
 * instead, and what waits is theirs to bound.
 */
export class SessionSender implements StreamSender {
  readonly #options: SenderOptions;
  readonly #socket: Socket;
  readonly #output = new OutputBuffer();
  readonly #encoder = new HeaderBlockEncoder();
  /** Streams that may send. */
  readonly #ready = new SendQueue<Http2Stream>();
  /** Streams that wait for the window of the connection, and for their own. */
  readonly #waitForConnection = new SendQueue<Http2Stream>();
  readonly #waitForOwn = new SendQueue<Http2Stream>();
  readonly #windows = new SendWindows();
  #initialWindowGrew = false;
  #advancing: Http2Stream | undefined;
  #inFlight: OutputBatch | undefined;
  /** What was written at the end, which is not followed until it has been taken. */
  #last: OutputBatch | undefined;
  /** The memory that `onHeld` knows of. */
  #heldBytes = 0;
  /** Writes that the socket took at once, whose callbacks are still to come. */
  #takenAtOnce = 0;
  #controlFrames = 0;
  /** To be called when the output, and when the batch in flight, has been taken. */
  #afterOutput: (() => void)[] = [];
  #afterInFlight: (() => void)[] = [];
  #isFlushDue = false;
  #isClosed = false;
  #isSocketClosed = false;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#socket = options.socket;
  }

  send(stream: Http2Stream): void {
    if (this.#isClosed || this.#advancing === stream) return;
    // A stream that waits for its own window may still begin its headers, which need none.
    if (stream.queue !== undefined && stream.queue !== (this.#waitForOwn as unknown)) return;
    // Others have waited for the window of the connection: it is theirs at the end of the turn.
    const isBehind = stream.pendingBytes > 0 && this.#waitForConnection.first !== undefined;
    if (this.#isFull || isBehind) this.#ready.push(stream);
    else this.#advance(stream);
    this.#flushSoon();
  }

  sendLater(stream: Http2Stream): void {
    if (this.#isClosed || stream.queue !== undefined || this.#advancing === stream) return;
    this.#ready.push(stream);
    this.#flushSoon();
  }

  sendWhole(stream: Http2Stream, head: HeaderBlock, data: Buffer, trailers: HeaderBlock): boolean {
    const { length } = data;
    if (this.#isFull || this.#isClosed || length > maxFrameBytes || length > this.#windows.connection) return false;
    if (length > this.#windows.ofStream(stream) || this.#waitForConnection.first !== undefined) return false;
    stream.headersSent = true;
    stream.isEnding = true;
    this.#writeHeaders(stream.id, head, 0);
    this.#windows.sent(stream, length);
    this.#output.head(frameType.data, 0, stream.id, length);
    this.#output.bytesOf(data, 0, length);
    this.#writeHeaders(stream.id, trailers, flag.endStream);
    this.#ended(stream);
    this.#flushSoon();
    return true;
  }

  /** A frame of at most eight bytes without a stream's data. */
  control(type: number, flags: number, streamId: number, words: readonly number[]): void {
    if (this.#isClosed) return;
    this.#controlFrames += 1;
    this.#output.head(type, flags, streamId, words.length * 4);
    for (const word of words) this.#output.uint32(word);
    if (this.#controlFrames > this.#options.maxUnreadControlFrames) this.#options.onUnreadControlFrames();
    this.#flushSoon();
  }

  /** SETTINGS, as pairs of an identifier and a value. */
  settings(pairs: readonly (readonly [identifier: number, value: number])[]): void {
    this.#output.head(frameType.settings, 0, 0, pairs.length * 6);
    for (const [identifier, value] of pairs) {
      this.#output.uint16(identifier);
      this.#output.uint32(value);
    }
    this.#flushSoon();
  }

  goAway(lastStreamId: number, code: number, text = ''): void {
    if (this.#isClosed) return;
    const bytes = Buffer.from(text, 'latin1');
    this.#output.head(frameType.goAway, 0, 0, 8 + bytes.length);
    this.#output.uint32(lastStreamId);
    this.#output.uint32(code);
    this.#output.bytesOf(bytes, 0, bytes.length);
    this.#flushSoon();
  }

  /** The stream is over: it leaves its queue, and RST_STREAM tells the client if `code` is given. */
  drop(stream: Http2Stream, code?: number): void {
    removeFromQueue(stream);
    stream.pendingHead = undefined;
    stream.pendingData = undefined;
    stream.pendingMore = undefined;
    stream.pendingBytes = 0;
    stream.pendingTrailers = undefined;
    if (code !== undefined) this.control(frameType.rstStream, 0, stream.id, [code]);
  }

  /** False when the window would become too large. */
  addConnectionWindow(bytes: number): boolean {
    if (this.#waitForConnection.first !== undefined) this.#flushSoon();
    return this.#windows.addToConnection(bytes);
  }

  addStreamWindow(stream: Http2Stream, bytes: number): boolean {
    if (!this.#windows.addToStream(stream, bytes)) return false;
    if (this.#windows.ofStream(stream) > 0 && stream.queue === (this.#waitForOwn as unknown)) {
      this.#ready.push(stream);
      this.#flushSoon();
    }
    return true;
  }

  /** For new streams and the open ones, which are `streams`. False when the window of one would become too large. */
  setInitialWindow(bytes: number, streams: Iterable<Http2Stream>): boolean {
    if (bytes > this.#windows.initial && this.#waitForOwn.first !== undefined) {
      // Once in a turn, however many SETTINGS arrive in it.
      this.#initialWindowGrew = true;
      this.#flushSoon();
    }
    return this.#windows.setInitial(bytes, streams);
  }

  setTableBytes(bytes: number): void {
    this.#encoder.setPeerTableBytes(bytes);
  }

  /** Writes what there is, then ends the socket's writing side. Nothing can be sent afterwards. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const batch = this.#output.take();
    if (this.#socket.destroyed) return;
    if (batch !== undefined) for (const part of batch.parts) this.#socket.write(part);
    this.#socket.end();
    if (this.#socket.writableLength > 0) this.#last = batch;
    this.#countHeld();
  }

  /** The socket is gone: its memory is free. */
  socketClosed(): void {
    this.#isClosed = true;
    this.#isSocketClosed = true;
    this.#inFlight = undefined;
    this.#last = undefined;
    this.#output.take();
    this.#countHeld();
    for (const callback of [...this.#afterInFlight.splice(0), ...this.#afterOutput.splice(0)]) callback();
  }

  afterOutput(callback: () => void): void {
    if (this.#isSocketClosed || (this.isIdle && this.#last === undefined)) callback();
    else if (this.#output.bytes > 0 || this.#last !== undefined) this.#afterOutput.push(callback);
    else this.#afterInFlight.push(callback);
  }

  /** True when the socket has taken everything. */
  get isIdle(): boolean {
    return this.#output.bytes === 0 && this.#inFlight === undefined;
  }

  /** Called at the end of the turn. */
  flush(): void {
    this.#isFlushDue = false;
    if (this.#isClosed || this.#inFlight !== undefined) return;
    if (this.#initialWindowGrew) this.#wakeAll();
    this.#pump();
    const batch = this.#output.take();
    if (batch !== undefined) this.#write(batch);
    else this.#options.onIdle();
  }

  get #isFull(): boolean {
    return this.#output.bytes >= this.#options.maxOutputBytes;
  }

  #flushSoon(): void {
    if (this.#isFlushDue || this.#isClosed) return;
    if (this.#inFlight !== undefined) {
      this.#countHeld();
      return;
    }
    this.#isFlushDue = true;
    flushLater(this);
  }

  #wakeAll(): void {
    this.#initialWindowGrew = false;
    for (let stream = this.#waitForOwn.first; stream !== undefined; stream = this.#waitForOwn.first) {
      this.#ready.push(stream);
    }
  }

  /** Streams that wait for the connection go first: later ones would take its window from them. */
  #pump(): void {
    while (!this.#isFull) {
      const waiting = this.#windows.connection > 0 ? this.#waitForConnection.first : undefined;
      const stream = waiting ?? this.#ready.first;
      if (stream === undefined) return;
      removeFromQueue(stream);
      this.#advance(stream);
    }
  }

  #advance(stream: Http2Stream): void {
    const before = this.#advancing;
    this.#advancing = stream;
    if (stream.pendingHead !== undefined) this.#sendHead(stream, stream.pendingHead);
    const isDone = this.#sendData(stream);
    if (isDone && stream.isEnding && !stream.isClosed && !stream.localEnded) this.#sendEnd(stream);
    this.#advancing = before;
  }

  #sendHead(stream: Http2Stream, head: HeaderBlock): void {
    stream.pendingHead = undefined;
    const isAll = stream.isEnding && stream.pendingBytes === 0 && stream.pendingTrailers === undefined;
    this.#writeHeaders(stream.id, head, isAll ? flag.endStream : 0);
    if (isAll) this.#ended(stream);
  }

  /** True when all data has been sent; else the stream waits in a queue, or is closed. */
  #sendData(stream: Http2Stream): boolean {
    let sentBytes = 0;
    while (stream.pendingBytes > 0) {
      if (this.#windows.connection <= 0) {
        this.#waitForConnection.push(stream);
        return false;
      }
      const ownWindow = this.#windows.ofStream(stream);
      if (ownWindow <= 0) {
        this.#waitForOwn.push(stream);
        return false;
      }
      if (sentBytes >= quantumBytes || (sentBytes > 0 && this.#isFull)) {
        this.#ready.push(stream);
        return false;
      }
      sentBytes += this.#sendFrame(stream, Math.min(this.#windows.connection, ownWindow));
      if (stream.isClosed) return false;
      if (stream.pendingBytes === 0) stream.drained();
    }
    return !stream.isClosed;
  }

  /** Sends one DATA frame, and returns the bytes of data in it. */
  #sendFrame(stream: Http2Stream, windowBytes: number): number {
    const bytes = Math.min(windowBytes, maxFrameBytes, stream.pendingBytes);
    const isLast = bytes === stream.pendingBytes && stream.isEnding && stream.pendingTrailers === undefined;
    this.#options.pings.sent();
    this.#windows.sent(stream, bytes);
    stream.pendingBytes -= bytes;
    this.#output.head(frameType.data, isLast ? flag.endStream : 0, stream.id, bytes);
    this.#moveData(stream, bytes);
    stream.dataSent(bytes);
    if (isLast && !stream.isClosed) this.#ended(stream);
    return bytes;
  }

  #moveData(stream: Http2Stream, bytes: number): void {
    let left = bytes;
    while (left > 0) {
      const data = stream.pendingData!;
      const count = Math.min(left, data.length);
      this.#output.bytesOf(data, 0, count, !stream.countsOutput);
      left -= count;
      stream.pendingData = count < data.length ? data.subarray(count) : stream.takeMore();
    }
  }

  #sendEnd(stream: Http2Stream): void {
    const { pendingTrailers: trailers } = stream;
    stream.pendingTrailers = undefined;
    if (trailers !== undefined) this.#writeHeaders(stream.id, trailers, flag.endStream);
    else this.#output.head(frameType.data, flag.endStream, stream.id, 0);
    this.#ended(stream);
  }

  #ended(stream: Http2Stream): void {
    stream.localEnded = true;
    if (stream.remoteEnded) this.#options.onStreamEnded(stream);
  }

  #writeHeaders(streamId: number, block: HeaderBlock, flags: number): void {
    this.#options.pings.sent();
    const bytes = this.#encoder.encode(block);
    const { length } = bytes;
    const first = Math.min(length, maxFrameBytes);
    const isWhole = first === length;
    this.#output.head(frameType.headers, isWhole ? flags | flag.endHeaders : flags, streamId, first);
    this.#output.bytesOf(bytes, 0, first);
    for (let at = first; at < length; at += maxFrameBytes) {
      const end = Math.min(length, at + maxFrameBytes);
      this.#output.head(frameType.continuation, end === length ? flag.endHeaders : 0, streamId, end - at);
      this.#output.bytesOf(bytes, at, end);
    }
  }

  #write(batch: OutputBatch): void {
    const { parts } = batch;
    const last = parts.length - 1;
    this.#inFlight = batch;
    this.#afterInFlight = this.#afterOutput;
    if (this.#afterOutput.length > 0) this.#afterOutput = [];
    if (last === 0) {
      this.#socket.write(parts[0]!, this.#onWritten);
    } else {
      this.#socket.cork();
      for (let index = 0; index < last; index++) this.#socket.write(parts[index]!);
      this.#socket.write(parts[last]!, this.#onWritten);
      this.#socket.uncork();
    }
    // The kernel has taken all of it: the callback, which comes later, need not be awaited.
    if (this.#socket.writableLength === 0 && this.#inFlight === batch) {
      this.#takenAtOnce += 1;
      this.#taken();
    } else {
      this.#countHeld();
    }
  }

  /** The owner may close the connection because of it: this comes last in what a method does. */
  #countHeld(): void {
    const waiting = this.#inFlight === undefined ? 0 : this.#inFlight.heldBytes + this.#output.heldBytes;
    const held = waiting + (this.#last === undefined ? 0 : this.#last.heldBytes);
    if (held === this.#heldBytes) return;
    const more = held - this.#heldBytes;
    this.#heldBytes = held;
    this.#options.onHeld(more);
  }

  readonly #onWritten = (): void => {
    if (this.#takenAtOnce > 0) this.#takenAtOnce -= 1;
    else this.#taken();
  };

  #taken(): void {
    const batch = this.#inFlight;
    if (batch === undefined) return;
    this.#inFlight = undefined;
    this.#controlFrames = 0;
    releaseSlabs(batch.slabs);
    this.#countHeld();
    if (this.#afterInFlight.length > 0) for (const callback of this.#afterInFlight.splice(0)) callback();
    const hasMore = this.#output.bytes > 0 || this.#ready.first !== undefined;
    if (hasMore || (this.#windows.connection > 0 && this.#waitForConnection.first !== undefined)) this.#flushSoon();
    else this.#options.onIdle();
  }
}
