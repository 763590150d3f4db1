import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Requester } from '@tenure/core';
import { exactText, reasonTrailer } from '@tenure/protocol';
import { frameHeadroomBytes } from '@tenure/codec';
import type { CallConnection, Connection, OpenCall } from './connection.ts';
import { encodeGrpcMessage } from './grpc-message.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import type { CallHead } from './request-head.ts';
import type { Call } from './transport.ts';

/** The maximum delay of a timer; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

const replyHeaders = Object.freeze({ ':status': 200, 'content-type': 'application/grpc' });
const respondWithTrailers = Object.freeze({ waitForTrailers: true, sendDate: false });
const respondOnly = Object.freeze({ endStream: true, sendDate: false });
const okTrailers: Readonly<Record<string, string>> = Object.freeze({ 'grpc-status': '0' });

/**
 * The call of a stream, so that one listener function serves all streams: closures for each would be a tenth of a
 * call's cost.
 */
const callOf: unique symbol = Symbol('call');
type CallStream = ServerHttp2Stream & { [callOf]?: StreamCall };

/**
 * The common part of the three kinds of call: one HTTP/2 stream from its headers to its close, the deadline, the
 * signal, and the two ways of ending: trailers after messages, or a status alone.
 */
export abstract class StreamCall implements Call, OpenCall {
  readonly path: string;
  readonly metadata: IncomingHttpHeaders;
  readonly deadlineMs: number;
  readonly connection: Connection;
  requester: Requester | undefined = undefined;
  protected readonly stream: ServerHttp2Stream;
  /** The sweep in which the call last made progress; see Connection.sweeps. */
  protected lastProgress: number;
  /** True once a status has been sent or the stream is gone: nothing more may be sent. */
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

  /** Accepts the request and starts the handler. Called once, before anything else. */
  abstract start(): void;

  /** Ends the call with a status that its handler did not choose: the deadline, a limit, the end of the server. */
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

  /** HTTP/2 has taken every message: the status can be sent. */
  sendTrailers(): void {
    // The stream may have been reset in between, and then no status can be sent.
    if (this.isGone) return;
    this.stream.sendTrailers(this.#trailers);
    this.statusSent();
  }

  /**
   * Called by the sweep of the connection for the calls in its timedCalls. A client that continues to send after the
   * response is reset; not at once, since a reset overtakes data that still waits to be written, on Node 22 even the
   * headers of its own stream, and gRPC clients close such a stream by themselves.
   */
  sweep(): void {
    if (this.#statusSentAt < 0) this.sweepUnanswered();
    else if (this.connection.sweeps - this.#statusSentAt > 1) this.stream.close(constants.NGHTTP2_NO_ERROR);
  }

  /** Data of the request has arrived. Not called once the call has ended: the rest is dropped. */
  abstract received(chunk: Buffer): void;

  /** The client has finished sending. Not called once the call has ended. */
  abstract halfClosed(): void;

  /** Ends the call if it has made no progress for too long. */
  protected abstract sweepUnanswered(): void;

  /** The stream was closed by either side. Called once. */
  protected abstract closed(): void;

  /** True when the stream has been reset, by either side. It may still emit earlier data, but a response throws. */
  protected get isGone(): boolean {
    return this.stream.destroyed || this.stream.closed;
  }

  /** Starts reading the request. A call that never does stops its client by flow control. */
  protected startReading(): void {
    this.stream.on('data', onData);
    this.stream.on('end', onEnd);
  }

  /**
   * Reports the number of held request bytes, which counts against the connection's budget until the next report or the
   * close of the stream. Throws GrpcStatus when it is more than before and the budget has no room.
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

  /** Starts the timer of the deadline. Skipped by calls that are answered synchronously. */
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

  /** Sends the headers of a reply that has messages; `finish` ends it. Once per call. */
  protected startReply(): void {
    this.stream.respond(replyHeaders, respondWithTrailers);
    this.stream.on('wantTrailers', onWantTrailers);
  }

  /** The response is determined, though not all of it has been sent. */
  protected settle(): void {
    this.ended = true;
    if (this.#deadlineTimer !== undefined) clearTimeout(this.#deadlineTimer);
  }

  /** Ends the call: after headers the status follows in trailers, otherwise it is sent alone. Undefined means Ok. */
  protected finish(status: GrpcStatus | undefined): void {
    this.settle();
    const { stream } = this;
    if (this.isGone) return;
    // Further data of the client is dropped; unread it would keep the stream from closing.
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

  /** Responds with headers alone. */
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

/** Fills in the reserved prefix: not compressed, and the length. */
export function fillPrefix(framed: Buffer, framedBytes = framed.length): Buffer {
  framed[0] = 0;
  framed.writeUInt32BE(framedBytes - frameHeadroomBytes, 1);
  return framed;
}

/** The only place where a status is written to the wire: it adds no suffix to a text of etcd. */
function statusTrailers(status: GrpcStatus): Record<string, string> {
  const trailers: Record<string, string> = { 'grpc-status': String(status.code) };
  if (status.message !== '') trailers['grpc-message'] = encodeGrpcMessage(exactText(status.message));
  if (status.reason !== undefined) trailers[reasonTrailer] = encodeGrpcMessage(status.reason);
  return trailers;
}

/** The status for an error thrown by a handler: a GrpcStatus unchanged, any other error without its text. */
export function toStatus(error: unknown, { log }: Pick<CallConnection, 'log'>, path: string): GrpcStatus {
  if (error instanceof GrpcStatus) return error;
  log.error({ err: error, path }, 'a gRPC handler failed');
  return new GrpcStatus(GrpcCode.internal, 'internal error');
}

export function deadlineExceeded(): GrpcStatus {
  return new GrpcStatus(GrpcCode.deadlineExceeded, 'context deadline exceeded');
}
