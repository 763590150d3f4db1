import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Connection } from './connection.ts';
import { callIsOver, GrpcCode, GrpcStatus } from './grpc-status.ts';
import type { RequestHead } from './request-head.ts';
import { cardinalityViolation, SingleRequestCall } from './single-request-call.ts';
import { fillPrefix, toStatus } from './stream-call.ts';
import type { ServerStreamHandler } from './transport.ts';

/** A send that waits for the stream to drain. Sends that a handler makes without waiting share one. */
interface WaitingSend {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: GrpcStatus) => void;
}

/** One server-streaming call: receives the request, then sends until the handler returns. */
export class ServerStreamCall extends SingleRequestCall {
  protected readonly firstIsAll = false;
  readonly #handle: ServerStreamHandler;
  #waiting: WaitingSend | undefined;

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
    this.stream.on('drain', () => this.#drained());
    this.armDeadline();
    this.startReading();
  }

  override refuse(status: GrpcStatus): void {
    super.refuse(status);
    this.#stopWaiting();
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
    this.#stopWaiting();
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
    this.#waiting ??= waitingSend();
    return this.#waiting.promise;
  }

  #drained(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve();
  }

  #stopWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(callIsOver());
  }
}

function waitingSend(): WaitingSend {
  let resolve: () => void = () => {};
  let reject: (error: GrpcStatus) => void = () => {};
  const promise = new Promise<void>((settle, fail) => {
    resolve = settle;
    reject = fail;
  });
  // A handler that does not await its sends must not leave a rejection unhandled when its client disconnects.
  promise.catch(() => {});
  return { promise, resolve, reject };
}
