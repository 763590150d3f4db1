import type { IncomingHttpHeaders } from 'node:http';
import { errorCode } from '../http2/frame-type.ts';
import type { Connection } from './connection.ts';
import { callIsOver, GrpcCode, GrpcStatus } from './grpc-status.ts';
import type { RequestHead } from './request-head.ts';
import { cardinalityViolation, SingleRequestCall } from './single-request-call.ts';
import { fillPrefix, minStreamBufferBytes, replyHead, toStatus } from './stream-call.ts';
import type { ServerStreamHandler } from './call.ts';
import { WaitingSends } from './waiting-send.ts';

/** One server-streaming call: receives the request, then sends until the handler returns. */
export class ServerStreamCall extends SingleRequestCall {
  protected readonly firstIsAll = false;
  readonly #handle: ServerStreamHandler;
  readonly #waiting = new WaitingSends();

  constructor(
    id: number,
    metadata: IncomingHttpHeaders,
    head: RequestHead,
    connection: Connection,
    handle: ServerStreamHandler,
  ) {
    super(id, metadata, head, connection);
    this.#handle = handle;
    connection.lastingCalls.add(this);
  }

  start(): void {
    this.armDeadline();
  }

  override refuse(status: GrpcStatus): void {
    super.refuse(status);
    this.#waiting.over();
  }

  override drained(): void {
    this.#waiting.drained();
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
    if (this.pendingBytes === 0) this.lastProgress = this.connection.sweeps;
    else if (idleMs > this.connection.limits.stalledReplyTimeoutMs) this.reset(errorCode.cancel);
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
    if (this.ended || this.isClosed) return Promise.reject(callIsOver());
    this.sendHead(replyHead);
    this.holdSend(framed.length);
    this.sendData(fillPrefix(framed));
    if (this.pendingBytes < minStreamBufferBytes) return Promise.resolve();
    return this.#waiting.wait();
  }
}
