import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Connection } from './connection.ts';
import type { HttpExchange } from './http-queue.ts';
import { OutgoingReply, piecesOf } from './outgoing-reply.ts';
import { StreamCall } from './stream-call.ts';
import type { HttpReply, HttpRequest } from './transport.ts';

const tooManyRequests: HttpReply = { status: 503, headers: {}, body: '' };

/**
 * A request over HTTP/2 that is not gRPC: counted and limited like a call, with the same timeouts. A body is dropped.
 */
export class HttpCall extends StreamCall implements HttpExchange {
  readonly request: HttpRequest;
  #outgoing: OutgoingReply | undefined;

  constructor(stream: ServerHttp2Stream, metadata: IncomingHttpHeaders, connection: Connection) {
    const target = metadata[':path'] ?? '';
    super(stream, metadata, { path: target, timeoutMs: Infinity }, connection);
    const isSecure = connection.session.encrypted === true;
    this.request = { method: metadata[':method'] ?? '', target, headers: metadata, isSecure };
    connection.timedCalls.add(this);
  }

  get client(): Connection {
    return this.connection;
  }

  start(): void {
    this.startReading();
    const isTaken = this.connection.replyBytes.hasRoom && this.connection.http.push(this);
    if (!isTaken) this.answer(tooManyRequests);
  }

  answer({ status, headers, body }: HttpReply): void {
    if (this.ended || this.isGone) return;
    this.settle();
    this.lastProgress = this.connection.sweeps;
    const bytes = Buffer.from(body);
    const isBodiless = bytes.length === 0 || this.request.method === 'HEAD';
    this.stream.respond({ ':status': status, ...headers, 'content-length': bytes.length }, { endStream: isBodiless });
    if (isBodiless) {
      this.statusSent();
      return;
    }
    const pieces = piecesOf(bytes);
    this.#outgoing = new OutgoingReply(this.stream, pieces, pieces.nextPiece(), this.connection.replyBytes, (isAll) => {
      this.lastProgress = this.connection.sweeps;
      if (!isAll) return;
      this.stream.end();
      this.statusSent();
    });
  }

  received(): void {}

  halfClosed(): void {}

  protected sweepUnanswered(): void {
    const { limits, sweeps } = this.connection;
    const idleMs = (sweeps - this.lastProgress) * limits.sweepIntervalMs;
    // Until there is a response the request waits for its handler, which has its own limits.
    if (this.#outgoing !== undefined && idleMs > limits.stalledReplyTimeoutMs) this.stream.destroy();
  }

  protected closed(): void {
    this.#outgoing?.streamClosed();
    this.connection.http.forget(this);
  }
}
