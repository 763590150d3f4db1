import type { RpcMethod } from '@tenure/protocol';
import { type GrpcStatus, type HttpStream, WaitingSends, callIsOver, toStatus } from '@tenure/grpc-server';
import type { ServerStreamHandler } from '../transport/transport.ts';
import type { CallOptions } from './gateway-call.ts';
import { resultLine } from './result-line.ts';
import { SingleRequest } from './single-request.ts';

/** A server-streaming call at the gateway: one request, and a line for each message. */
export class ServerStreamRequest extends SingleRequest {
  readonly #handle: ServerStreamHandler;
  #isInvoked = false;
  readonly #waiting = new WaitingSends();
  #replyBytes = 0;
  #progressAt = 0;

  constructor(stream: HttpStream, method: RpcMethod, handle: ServerStreamHandler, options: CallOptions) {
    super(stream, method, options);
    this.#handle = handle;
    stream.lasts();
    stream.onRefuse = (status) => this.refuse(status);
    stream.onDrain = () => this.#waiting.drained();
  }

  override refuse(status: GrpcStatus): void {
    super.refuse(status);
    this.#waiting.over();
  }

  protected invoke(request: Buffer): void {
    if (this.ended) return;
    this.#isInvoked = true;
    const send = (framed: Buffer) => this.#send(framed);
    // A handler that throws instead of rejecting is caught the same way.
    const handled = new Promise<void>((resolve) => resolve(this.#handle(request, this, send)));
    handled.then(
      () => this.#complete(),
      (error: unknown) => this.#fail(error),
    );
  }

  protected override finish(status: GrpcStatus): void {
    if (!this.#isInvoked) {
      super.finish(status);
      return;
    }
    this.settle();
    this.sendErrorLine(status);
  }

  protected sweepReply(): void {
    const { limits, sweeps } = this.stream.connection;
    if (this.stream.bufferedBytes === 0) this.#progressAt = sweeps;
    else if ((sweeps - this.#progressAt) * limits.sweepIntervalMs > limits.stalledReplyTimeoutMs) this.stream.destroy();
  }

  protected closed(): void {
    this.stream.connection.replyBytes.giveBack(this.#replyBytes);
    this.#replyBytes = 0;
    this.#waiting.over();
  }

  #complete(): void {
    if (this.ended) return;
    this.settle();
    if (!this.hasReplied) this.startReply();
    this.stream.end();
  }

  #fail(error: unknown): void {
    if (this.ended) return;
    this.finish(toStatus(error, this.stream.connection, this.path));
  }

  #send(framed: Buffer): Promise<void> {
    if (this.ended) return Promise.reject(callIsOver());
    if (!this.hasReplied) this.startReply();
    const line = resultLine(this.method.descriptor.output, framed);
    this.#replyBytes += line.length;
    this.stream.connection.replyBytes.take(line.length);
    const hasRoom = this.stream.write(line, () => {
      this.#progressAt = this.stream.connection.sweeps;
      if (this.#replyBytes === 0) return;
      this.#replyBytes -= line.length;
      this.stream.connection.replyBytes.giveBack(line.length);
    });
    if (hasRoom) return Promise.resolve();
    return this.#waiting.wait();
  }
}
