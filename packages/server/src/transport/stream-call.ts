import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { exactText, reasonTrailer } from '@tenure/protocol';
import { frameHeadroomBytes } from '@tenure/codec';
import type { Connection, OpenCall } from './connection.ts';
import { encodeGrpcMessage } from './grpc-message.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import type { CallHead } from './request-head.ts';
import type { Call } from './transport.ts';

/** The longest delay that a timer takes; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

const replyHeaders = Object.freeze({ ':status': 200, 'content-type': 'application/grpc' });
const respondWithTrailers = Object.freeze({ waitForTrailers: true, sendDate: false });
const respondOnly = Object.freeze({ endStream: true, sendDate: false });
const okTrailers: Readonly<Record<string, string>> = Object.freeze({ 'grpc-status': '0' });

/**
 * The call of a stream, so that one listener function serves all streams: closures for each are a tenth of a call's
 * cost.
 */
const callOf: unique symbol = Symbol('call');
type CallStream = ServerHttp2Stream & { [callOf]?: StreamCall };

/**
 * What the three kinds of call have in common: one HTTP/2 stream from its headers to its close, the deadline, the
 * signal, and the two ways of ending: trailers after messages, or a status alone.
 */
export abstract class StreamCall implements Call, OpenCall {
  readonly path: string;
  readonly metadata: IncomingHttpHeaders;
  readonly deadlineMs: number;
  readonly connection: Connection;
  protected readonly stream: ServerHttp2Stream;
  /** The sweep in which the call last made progress; see Connection.sweeps. */
  protected lastProgress: number;
  /** True once a status is on its way or the stream is gone: nothing more may be sent. */
  protected ended = false;
  /** The sweep in which the status was handed to HTTP/2, or -1. */
  #statusSentAt = -1;
  #heldRequestBytes = 0;
  #trailers: Readonly<Record<string, string>> = okTrailers;
  #abort: AbortController | undefined;
  #aborted = false;
  #deadlineTimer: NodeJS.Timeout | undefined;

  constructor(stream: ServerHttp2Stream, metadata: IncomingHttpHeaders, head: CallHead, connection: Connection) {
    this.stream = stream;
    this.metadata = metadata;
    this.path = head.path;
    this.connection = connection;
    this.lastProgress = connection.sweeps;
    this.deadlineMs = head.timeoutMs === Infinity ? Infinity : performance.now() + head.timeoutMs;
    (stream as CallStream)[callOf] = this;
    connection.openCalls.take(1);
    stream.on('close', onClose);
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#aborted) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** Lets the request in, and the handler see it. Called once, before anything else. */
  abstract start(): void;

  /** Ends the call with a status other than what its handler decides: the deadline, a limit, the end of the server. */
  refuse(status: GrpcStatus): void {
    if (this.ended) return;
    this.abort();
    this.finish(status);
  }

  /** The stream has closed. */
  streamClosed(): void {
    this.ended = true;
    if (this.#deadlineTimer !== undefined) clearTimeout(this.#deadlineTimer);
    this.abort();
    this.connection.timedCalls.delete(this);
    this.connection.openCalls.giveBack(1);
    this.connection.requestBytes.giveBack(this.#heldRequestBytes);
    this.#heldRequestBytes = 0;
    if (this.stream.rstCode !== constants.NGHTTP2_NO_ERROR) this.connection.countReset();
    this.closed();
  }

  /** The time for the status: every message has been taken by HTTP/2. */
  sendTrailers(): void {
    // The stream may have been reset in between, and there is nobody left to tell.
    if (this.isGone) return;
    this.stream.sendTrailers(this.#trailers);
    this.statusSent();
  }

  /**
   * Called by the sweep of the connection for the calls in its timedCalls. A client that goes on sending after it was
   * answered is told to stop; not at once, since a reset overtakes what still waits to be written, on Node 22 even the
   * headers of its own stream, and clients that know gRPC close such a stream by themselves.
   */
  sweep(): void {
    if (this.#statusSentAt < 0) this.sweepUnanswered();
    else if (this.connection.sweeps - this.#statusSentAt > 1) this.stream.close(constants.NGHTTP2_NO_ERROR);
  }

  /** Bytes of the request have come. Not called once the call has ended: the rest is dropped. */
  abstract received(chunk: Buffer): void;

  /** The client has finished sending. Not called once the call has ended. */
  abstract halfClosed(): void;

  /** Ends the call if it has made no progress for too long. */
  protected abstract sweepUnanswered(): void;

  /** The stream is gone, by whichever hand. Called once. */
  protected abstract closed(): void;

  /**
   * True when the stream has been reset, by either side. It may still hand out what had come before, but it throws at
   * whoever answers.
   */
  protected get isGone(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  /** Lets the request in. A call that never does holds up its client by flow control. */
  protected startReading(): void {
    this.stream.on('data', onData);
    this.stream.on('end', onEnd);
  }

  /**
   * Says how much of the request is held, and takes it from the connection's budget until it is said anew or the stream
   * closes. Throws GrpcStatus when it is more than before and the budget has no room.
   */
  protected holdRequest(bytes: number): void {
    const budget = this.connection.requestBytes;
    const more = bytes - this.#heldRequestBytes;
    if (more === 0) return;
    if (more > 0 && !budget.hasRoom) {
      throw new GrpcStatus(GrpcCode.resourceExhausted, 'too many bytes of unfinished requests on this connection');
    }
    this.#heldRequestBytes = bytes;
    budget.take(more);
  }

  protected abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#abort?.abort();
  }

  /** Starts the timer of the deadline. Left out by calls that are answered at once. */
  protected armDeadline(): void {
    if (this.deadlineMs === Infinity || this.ended) return;
    const remainingMs = this.deadlineMs - performance.now();
    if (remainingMs <= 0) {
      this.refuse(deadlineExceeded());
      return;
    }
    const delayMs = Math.min(Math.ceil(remainingMs), maxTimerMs);
    this.#deadlineTimer = setTimeout(() => this.armDeadline(), delayMs);
  }

  /** Sends the headers of a reply that has messages; `finish` ends it. Once a call. */
  protected startReply(): void {
    this.stream.respond(replyHeaders, respondWithTrailers);
    this.stream.on('wantTrailers', onWantTrailers);
  }

  /** What the call is answered is decided, though not all of it has left. */
  protected settle(): void {
    this.ended = true;
    if (this.#deadlineTimer !== undefined) clearTimeout(this.#deadlineTimer);
  }

  /**
   * Ends the call: with its headers out the status follows in trailers, else it goes alone. Undefined stands for Ok.
   */
  protected finish(status: GrpcStatus | undefined): void {
    this.settle();
    const { stream } = this;
    if (this.isGone) return;
    // What the client still sends is dropped; left unread it would keep the stream from closing.
    if (stream.isPaused()) stream.resume();
    if (stream.headersSent) {
      if (status !== undefined) this.#trailers = statusTrailers(status);
      stream.end();
    } else if (status !== undefined) {
      this.sendStatus(200, status);
    } else {
      this.startReply();
      stream.end();
    }
  }

  /** Answers with headers alone. */
  protected sendStatus(httpStatus: number, status: GrpcStatus): void {
    this.stream.respond({ ...replyHeaders, ':status': httpStatus, ...statusTrailers(status) }, respondOnly);
    this.statusSent();
  }

  /** All of the reply has been handed to HTTP/2. */
  protected statusSent(): void {
    this.#statusSentAt = this.connection.sweeps;
    if (!this.stream.readableEnded) this.connection.timedCalls.add(this);
  }
}

function onData(this: CallStream, chunk: Buffer): void {
  const call = this[callOf];
  if (call !== undefined) call.received(chunk);
}

function onEnd(this: CallStream): void {
  this[callOf]?.halfClosed();
}

function onWantTrailers(this: CallStream): void {
  this[callOf]?.sendTrailers();
}

function onClose(this: CallStream): void {
  this[callOf]?.streamClosed();
}

/** Fills in the prefix that the encoder left free: not compressed, and the length. */
export function fillPrefix(framed: Buffer, framedBytes = framed.length): Buffer {
  framed[0] = 0;
  framed.writeUInt32BE(framedBytes - frameHeadroomBytes, 1);
  return framed;
}

/** The one place where a status gets its form on the wire: no text of etcd leaves with anything behind it. */
function statusTrailers(status: GrpcStatus): Record<string, string> {
  const trailers: Record<string, string> = { 'grpc-status': String(status.code) };
  if (status.message !== '') trailers['grpc-message'] = encodeGrpcMessage(exactText(status.message));
  if (status.reason !== undefined) trailers[reasonTrailer] = encodeGrpcMessage(status.reason);
  return trailers;
}

/** The status of whatever a handler threw: its own refusal as it is, anything else without a word of what it was. */
export function toStatus(error: unknown, connection: Connection, path: string): GrpcStatus {
  if (error instanceof GrpcStatus) return error;
  connection.log.error({ err: error, path }, 'a gRPC handler failed');
  return new GrpcStatus(GrpcCode.internal, 'internal error');
}

export function deadlineExceeded(): GrpcStatus {
  return new GrpcStatus(GrpcCode.deadlineExceeded, 'context deadline exceeded');
}
