import type { IncomingHttpHeaders } from 'node:http';
import { errorCode } from '../http2/frame-type.ts';
import type { Connection } from './connection.ts';
import { headerBlockOf } from './http-headers.ts';
import type { HttpExchange } from './http-queue.ts';
import { OutgoingReply, piecesOf } from './outgoing-reply.ts';
import { StreamCall } from './stream-call.ts';
import type { HttpReply, HttpRequest } from './call.ts';

const tooManyRequests: HttpReply = { status: 503, headers: {}, body: '' };

/**
 * A request over HTTP/2 that is not gRPC: counted and limited like a call, with the same timeouts. A body is dropped.
 */
export class HttpCall extends StreamCall implements HttpExchange {
  readonly request: HttpRequest;
  #outgoing: OutgoingReply | undefined;

  constructor(id: number, metadata: IncomingHttpHeaders, connection: Connection) {
    const target = String(metadata[':path'] ?? '');
    super(id, metadata, { path: target, timeoutMs: Infinity }, connection);
    const method = String(metadata[':method'] ?? '');
    this.request = { method, target, headers: metadata, isSecure: connection.isSecure };
  }

  get client(): Connection {
    return this.connection;
  }

  start(): void {
    const isTaken = this.connection.replyBytes.hasRoom && this.connection.http.push(this);
    if (!isTaken) this.answer(tooManyRequests);
  }

  answer({ status, headers, body }: HttpReply): void {
    if (this.ended || this.isClosed) return;
    this.settle();
    this.lastProgress = this.connection.sweeps;
    const bytes = Buffer.from(body);
    const isBodiless = bytes.length === 0 || this.request.method === 'HEAD';
    this.sendHead(headerBlockOf(status, { ...headers, 'content-length': bytes.length }), isBodiless);
    if (isBodiless) return;
    const pieces = piecesOf(bytes);
    this.#outgoing = new OutgoingReply(this, pieces, this.connection.replyBytes);
    this.#outgoing.begin(pieces.nextPiece());
  }

  override drained(): void {
    if (this.#outgoing?.next() === true) this.sendEnd();
  }

  received(): void {}

  halfClosed(): void {}

  protected sweepUnanswered(): void {
    const { limits, sweeps } = this.connection;
    const idleMs = (sweeps - this.lastProgress) * limits.sweepIntervalMs;
    // Until there is a response the request waits for its handler, which has its own limits.
    if (this.#outgoing !== undefined && idleMs > limits.stalledReplyTimeoutMs) this.reset(errorCode.cancel);
  }

  protected closed(): void {
    this.#outgoing?.streamClosed();
    this.connection.http.forget(this);
  }
}
