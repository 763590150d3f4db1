import type { IncomingHttpHeaders } from 'node:http';
import { errorCode } from '../http2/frame-type.ts';
import { HeaderBlock } from '../http2/header-block.ts';
import { Http2Stream } from '../http2/http2-stream.ts';
import type { Budget } from '../limits/budget.ts';
import type { CallConnection, Connection, OpenCall } from './connection.ts';
import { encodeGrpcMessage } from './grpc-message.ts';
import { GrpcCode, GrpcStatus, type StatusFormat } from './grpc-status.ts';
import type { CallHead } from './request-head.ts';
import { type Call, frameHeadroomBytes } from './call.ts';

/** The maximum delay of a timer; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** What a stream may hold unsent before its writer is asked to wait, where no other limit is larger. */
export const minStreamBufferBytes = 16_384;

/** What nearly every reply begins and ends with. */
export const replyHead = HeaderBlock.frequent([
  [':status', '200', 'index'],
  ['content-type', 'application/grpc', 'index'],
]);
export const okTrailers = HeaderBlock.frequent([['grpc-status', '0', 'index']]);

/**
 * The common part of the three kinds of call: one HTTP/2 stream from its headers to its close, the deadline, the
 * signal, and the two ways of ending: trailers after messages, or a status alone.
 */
export abstract class StreamCall extends Http2Stream implements Call, OpenCall {
  readonly path: string;
  readonly metadata: IncomingHttpHeaders;
  readonly deadlineMs: number;
  readonly connection: Connection;
  requester: unknown = undefined;
  /** The sweep in which the call last made progress; see Connection.sweeps. */
  protected lastProgress: number;
  /** True once a status has been sent or the stream is gone: nothing more may be sent. */
  protected ended = false;
  /** The sweep that first found the whole reply sent, or -1. */
  #repliedAt = -1;
  #heldRequestBytes = 0;
  #heldSendBytes = 0;
  #trailers = okTrailers;
  #abort: AbortController | undefined;
  #aborted = false;
  #deadlineTimer: NodeJS.Timeout | undefined;

  constructor(id: number, metadata: IncomingHttpHeaders, head: CallHead, connection: Connection) {
    super(connection.session, id);
    this.metadata = metadata;
    this.path = head.path;
    this.connection = connection;
    this.lastProgress = connection.sweeps;
    this.deadlineMs = head.timeoutMs === Infinity ? Infinity : performance.now() + head.timeoutMs;
    connection.openCalls.take(1);
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#aborted) this.#abort.abort();
    }
    return this.#abort.signal;
  }

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
    this.connection.openCalls.giveBack(1);
    if (this.#heldRequestBytes > 0) this.connection.requestBytes.giveBack(this.#heldRequestBytes);
    if (this.#heldSendBytes > 0) this.sendBudget.giveBack(this.#heldSendBytes);
    this.#heldRequestBytes = 0;
    this.#heldSendBytes = 0;
    this.closed();
  }

  /**
   * Called by the sweep of the connection. A client that continues to send after the response is reset; not at once,
   * since gRPC clients close such a stream by themselves.
   */
  sweep(): void {
    if (!this.localEnded) {
      if (this.ended) this.#sweepUnsent();
      else this.sweepUnanswered();
      return;
    }
    if (this.#repliedAt < 0) this.#repliedAt = this.connection.sweeps;
    else if (this.connection.sweeps - this.#repliedAt > 1) this.reset(errorCode.noError);
  }

  /** Data has left for the socket. */
  dataSent(bytes: number): void {
    const counted = Math.min(bytes, this.#heldSendBytes);
    this.#heldSendBytes -= counted;
    this.lastProgress = this.connection.sweeps;
    if (counted > 0) this.sendBudget.giveBack(counted);
  }

  drained(): void {}

  held(): void {}

  /** Ends the call if it has made no progress for too long. */
  protected abstract sweepUnanswered(): void;

  /** The stream was closed by either side. Called once. */
  protected abstract closed(): void;

  /** What counts the bytes that wait to be sent. */
  protected get sendBudget(): Budget {
    return this.connection.replyBytes;
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

  /** Counts bytes that are about to be written, until they have left. */
  protected holdSend(bytes: number): void {
    this.#heldSendBytes += bytes;
    this.sendBudget.take(bytes);
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

  /** The response is determined, though not all of it has been sent. */
  protected settle(): void {
    this.ended = true;
    this.lastProgress = this.connection.sweeps;
    if (this.#deadlineTimer !== undefined) clearTimeout(this.#deadlineTimer);
  }

  /** Ends the call: after headers the status follows in trailers, otherwise it is sent alone. Undefined means Ok. */
  protected finish(status: GrpcStatus | undefined): void {
    this.settle();
    if (this.isClosed) return;
    // Further data of the client is dropped; held data would keep the stream from closing.
    this.resumeData();
    if (this.headersSent) {
      if (status !== undefined) this.#trailers = HeaderBlock.once(statusTrailers(status, this.connection.statusFormat));
      this.sendEnd(this.#trailers);
    } else if (status !== undefined) {
      this.sendStatus(200, status);
    } else {
      this.sendHead(replyHead);
      this.sendEnd(okTrailers);
    }
  }

  /** What is left of the response waits for its client: the stream is reset after too long. */
  #sweepUnsent(): void {
    const idleMs = (this.connection.sweeps - this.lastProgress) * this.connection.limits.sweepIntervalMs;
    if (idleMs > this.connection.limits.stalledReplyTimeoutMs) this.reset(errorCode.cancel);
  }

  /** Responds with headers alone. */
  protected sendStatus(httpStatus: number, status: GrpcStatus): void {
    const block = HeaderBlock.once([
      [':status', String(httpStatus), 'plain'],
      ['content-type', 'application/grpc', 'plain'],
      ...statusTrailers(status, this.connection.statusFormat),
    ]);
    this.sendHead(block, true);
  }
}

/** Fills in the reserved prefix: not compressed, and the length. */
export function fillPrefix(framed: Buffer, framedBytes = framed.length): Buffer {
  framed[0] = 0;
  framed.writeUInt32BE(framedBytes - frameHeadroomBytes, 1);
  return framed;
}

/** The only place where a status is written to the wire. */
function statusTrailers(
  status: GrpcStatus,
  { textOf, reasonTrailer }: StatusFormat,
): (readonly [string, string, 'plain'])[] {
  const trailers: (readonly [string, string, 'plain'])[] = [['grpc-status', String(status.code), 'plain']];
  if (status.message !== '') trailers.push(['grpc-message', encodeGrpcMessage(textOf(status.message)), 'plain']);
  if (status.reason !== undefined && reasonTrailer !== undefined) {
    trailers.push([reasonTrailer, encodeGrpcMessage(status.reason), 'plain']);
  }
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
