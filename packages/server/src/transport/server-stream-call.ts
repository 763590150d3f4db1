import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Connection } from './connection.ts';
import { callIsOver, GrpcCode, GrpcStatus } from './grpc-status.ts';
import type { RequestHead } from './request-head.ts';
import { cardinalityViolation, SingleRequestCall } from './single-request-call.ts';
import { fillPrefix, toStatus } from './stream-call.ts';
import type { ServerStreamHandler } from './transport.ts';
import { WaitingSends } from './waiting-send.ts';

/** One server-streaming call: receives the request, then sends until the handler returns. */
export class ServerStreamCall extends SingleRequestCall {
  protected readonly firstIsAll = false;
  readonly #handle: ServerStreamHandler;
  readonly #waiting = new WaitingSends();

  constructor(
    stream: ServerHttp2Stream,
    metadata: IncomingHttpHeaders,
    head: RequestHead,
    connection: Connection,
    handle: ServerStreamHandler,
  ) {
    super(stream, metadata, head, connection);
    this.#handle = handle;
    connection.lastingCalls.add(this);
  }

  start(): void {
    this.stream.on('drain', () => this.#waiting.drained());
    this.armDeadline();
    this.startReading();
  }

  override refuse(status: GrpcStatus): void {
    super.refuse(status);
    this.#waiting.over();
  }

  protected noMessage(what: 'cut off' | 'none'): GrpcStatus {
    if (what === 'none') return cardinalityViolation('received no request message from');
    return new GrpcStatus(GrpcCode.internal, 'unexpected EOF');
  }

  protected invoke(request: Buffer): void {
    const send = (framed: Buffer) => this.#send(framed);
    // A handler that throws instead of rejecting is caught the same way.
    const handled = new Promise<void>((resolve) => resolve(this.#handle(request, this, send)));
    handled.then(
      () => this.#complete(undefined),
      (error: unknown) => this.#complete(error),
    );
  }

  protected sweepReply(idleMs: number): void {
    if (this.stream.writableLength === 0) this.lastProgress = this.connection.sweeps;
    else if (idleMs > this.connection.limits.stalledReplyTimeoutMs) this.stream.destroy();
  }

  protected override closed(): void {
    super.closed();
    this.connection.lastingCalls.delete(this);
    this.#waiting.over();
  }

  #complete(error: unknown): void {
    // A rejection passed on by the handler because its call was over adds no information.
    if (this.ended && error instanceof GrpcStatus) return;
    const status = error === undefined ? undefined : toStatus(error, this.connection, this.path);
    if (!this.ended) this.finish(status);
  }

  #send(framed: Buffer): Promise<void> {
    if (this.ended || this.isGone) return Promise.reject(callIsOver());
    if (!this.stream.headersSent) this.startReply();
    const { replyBytes } = this.connection;
    replyBytes.take(framed.length);
    const hasRoom = this.stream.write(fillPrefix(framed), () => {
      replyBytes.giveBack(framed.length);
      this.lastProgress = this.connection.sweeps;
    });
    if (hasRoom) return Promise.resolve();
    return this.#waiting.wait();
  }
}
