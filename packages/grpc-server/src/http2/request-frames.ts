import { HpackError } from '../hpack/hpack-error.ts';
import { readUint31 } from './frame-reader.ts';
import { HeldData } from './held-data.ts';
import type { Http2Stream } from './http2-stream.ts';
import { type ReceivedHead, RequestHeadReader } from './request-head-reader.ts';
import type { SessionState } from './session-state.ts';
import { errorCode, flag } from './frame-type.ts';

/** A header block that is not complete. */
interface OpenBlock {
  readonly id: number;
  readonly flags: number;
  readonly parts: Buffer[];
  bytes: number;
}

/** HEADERS, CONTINUATION and DATA of one connection: the requests of its client. */
export class RequestFrames {
  readonly #session: SessionState;
  readonly #heads: RequestHeadReader;
  #block: OpenBlock | undefined;
  /** The stream of the last frame: the next frame is often of the same. */
  #last: Http2Stream | undefined;

  constructor(session: SessionState) {
    this.#session = session;
    this.#heads = new RequestHeadReader(session.limits);
  }

  /** True within a header block. */
  get isPartial(): boolean {
    return this.#block !== undefined;
  }

  /** Memory of a header block that is not complete. */
  get heldBytes(): number {
    return this.#block === undefined ? 0 : this.#block.bytes;
  }

  close(): void {
    this.#block = undefined;
  }

  headers(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const session = this.#session;
    if (id % 2 === 0) {
      session.connectionError(errorCode.protocolError, 'HEADERS on a stream that no client opens');
      return;
    }
    let from = start;
    let to = end;
    const isPadded = (flags & flag.padded) !== 0;
    const hasPriority = (flags & flag.priority) !== 0;
    if (end - start < (isPadded ? 1 : 0) + (hasPriority ? 5 : 0)) {
      session.connectionError(errorCode.frameSizeError, 'HEADERS that are too short');
      return;
    }
    if (isPadded) {
      to -= bytes[start]!;
      from += 1;
    }
    const dependency = from;
    if (hasPriority) from += 5;
    if (from > to) {
      session.connectionError(errorCode.protocolError, 'HEADERS with more padding than payload');
      return;
    }
    const dependsOnItself = hasPriority && readUint31(bytes, dependency) === id;
    if ((flags & flag.endHeaders) === 0) {
      this.#block = { id, flags, parts: [Buffer.from(bytes.subarray(from, to))], bytes: to - from };
      this.#checkBlock(this.#block);
      return;
    }
    this.#complete(flags, id, bytes, from, to);
    if (dependsOnItself && !session.isClosed) session.streamError(id, errorCode.protocolError);
  }

  continuation(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const block = this.#block;
    if (block === undefined || block.id !== id) {
      this.#session.connectionError(errorCode.protocolError, 'CONTINUATION without HEADERS');
      return;
    }
    block.parts.push(Buffer.from(bytes.subarray(start, end)));
    block.bytes += end - start;
    this.#checkBlock(block);
    if ((flags & flag.endHeaders) === 0 || this.#session.isClosed) return;
    this.#block = undefined;
    this.#complete(block.flags, id, Buffer.concat(block.parts), 0, block.bytes);
  }

  data(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const session = this.#session;
    if (id % 2 === 0 || id > session.lastId) {
      session.connectionError(errorCode.protocolError, 'DATA on a stream that is not open');
      return;
    }
    let from = start;
    let to = end;
    if ((flags & flag.padded) !== 0) {
      to -= start < end ? bytes[start]! : 0;
      from += 1;
      if (from > to) {
        session.connectionError(errorCode.protocolError, 'DATA with more padding than payload');
        return;
      }
    }
    if (!session.windows.arrived(end - start)) {
      session.connectionError(errorCode.flowControlError, 'DATA beyond the window of the connection');
      return;
    }
    const stream = this.#last?.id === id && !this.#last.isClosed ? this.#last : session.streams.get(id);
    if (stream === undefined || stream.remoteEnded) {
      this.#dataAfterEnd(id);
      return;
    }
    const isLast = (flags & flag.endStream) !== 0;
    if (from === to && !isLast) this.#ineffective();
    if (!session.windows.arrivedOn(stream, end - start)) {
      session.streamError(id, errorCode.flowControlError);
      return;
    }
    const padding = end - start - (to - from);
    if (padding > 0) session.windows.read(stream, padding);
    if (stream.expectedBytes >= 0 && !this.#fitsLength(stream, to - from, isLast)) return;
    this.#deliver(stream, bytes, from, to, isLast);
  }

  /** Tells the stream once that its client has finished, unless it is paused. */
  halfClose(stream: Http2Stream): void {
    if (!stream.remoteEnded || stream.hasHalfClosed || stream.isClosed || stream.isPaused) return;
    if (stream.heldBytes > 0 || stream.isReadingHeld) return;
    stream.hasHalfClosed = true;
    stream.halfClosed();
  }

  #deliver(stream: Http2Stream, bytes: Buffer, from: number, to: number, isLast: boolean): void {
    if (isLast) stream.remoteEnded = true;
    if (from < to) {
      if (stream.isPaused || stream.heldBytes > 0 || stream.isReadingHeld) {
        (stream.heldData ??= new HeldData()).push(bytes, from, to);
        stream.held();
      } else {
        this.#session.windows.read(stream, to - from);
        stream.received(bytes.subarray(from, to), isLast);
      }
    }
    if (!isLast) return;
    this.halfClose(stream);
    if (stream.localEnded && !stream.isClosed) this.#session.closeStream(stream);
  }

  /** Counts the body against its content-length. False when it does not fit: the stream is reset. */
  #fitsLength(stream: Http2Stream, bytes: number, isLast: boolean): boolean {
    stream.expectedBytes -= bytes;
    if (stream.expectedBytes >= 0 && (!isLast || stream.expectedBytes === 0)) return true;
    this.#session.streamError(stream.id, errorCode.protocolError);
    return false;
  }

  #dataAfterEnd(id: number): void {
    this.#ineffective();
    if (this.#session.wasReset(id)) return;
    this.#session.streamError(id, errorCode.streamClosed);
  }

  #checkBlock(block: OpenBlock): void {
    const { maxHeaderBlockBytes, maxContinuations } = this.#session.limits;
    if (block.bytes <= maxHeaderBlockBytes && block.parts.length <= maxContinuations) return;
    this.#session.owner.misbehaved('a client sends headers without end');
  }

  #complete(flags: number, id: number, bytes: Buffer, start: number, end: number): void {
    const session = this.#session;
    const isNew = id > session.lastId;
    let head: ReceivedHead;
    try {
      head = isNew ? this.#heads.request(bytes, start, end) : this.#heads.trailers(bytes, start, end);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      session.connectionError(errorCode.compressionError, error.message);
      return;
    }
    const endsStream = (flags & flag.endStream) !== 0;
    if (isNew) this.#open(id, head, endsStream);
    else this.#trailers(id, head, endsStream);
  }

  #open(id: number, head: ReceivedHead, endsStream: boolean): void {
    const session = this.#session;
    session.lastId = id;
    if (head.isTooLarge) {
      session.streamError(id, errorCode.enhanceYourCalm);
    } else if (head.fault !== undefined || (endsStream && head.bodyBytes > 0)) {
      session.streamError(id, errorCode.protocolError);
    } else if (id > session.lastServedId) {
      this.#ineffective();
      if (!session.isClosed) session.refuseStream(id, errorCode.refusedStream);
    } else if (session.streams.size >= session.limits.maxConcurrentStreams) {
      this.#reject(id);
    } else {
      this.#start(id, head, endsStream);
    }
  }

  #start(id: number, head: ReceivedHead, endsStream: boolean): void {
    const session = this.#session;
    const stream = session.owner.open(id, head);
    if (stream === undefined) return;
    session.streams.set(id, stream);
    // The owner may have closed the connection for this stream, which is one too many.
    if (session.isClosed) {
      session.closeStream(stream);
      return;
    }
    this.#last = stream;
    stream.expectedBytes = head.bodyBytes;
    stream.start();
    if (!stream.isClosed && endsStream) {
      stream.remoteEnded = true;
      this.halfClose(stream);
      if (stream.localEnded && !stream.isClosed) session.closeStream(stream);
    }
    if (!session.isClosed && !session.owner.mayOpen()) session.stopReading();
  }

  #reject(id: number): void {
    const session = this.#session;
    session.counts.rejected += 1;
    if (session.counts.rejected > session.limits.maxRejectedStreams) {
      session.owner.misbehaved('a client opens more streams than it may');
    } else {
      session.refuseStream(id, errorCode.refusedStream);
    }
  }

  #trailers(id: number, head: ReceivedHead, endsStream: boolean): void {
    const session = this.#session;
    const stream = session.streams.get(id);
    if (stream === undefined) {
      this.#ineffective();
      if (session.wasReset(id)) return;
      session.connectionError(errorCode.streamClosed, 'HEADERS on a stream that is closed');
    } else if (stream.remoteEnded) {
      session.streamError(id, errorCode.streamClosed);
    } else if (!endsStream || head.fault !== undefined || stream.expectedBytes > 0) {
      session.streamError(id, errorCode.protocolError);
    } else {
      stream.remoteEnded = true;
      this.halfClose(stream);
      if (stream.localEnded && !stream.isClosed) session.closeStream(stream);
    }
  }

  #ineffective(): void {
    this.#session.counts.ineffective += 1;
    this.#session.checkCounts();
  }
}
