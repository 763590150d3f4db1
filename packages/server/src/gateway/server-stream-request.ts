import type { RpcMethod } from '@tenure/protocol';
import { type GrpcStatus, type HttpStream, WaitingSends, callIsOver, toStatus } from '@tenure/grpc-server';
import type { ServerStreamHandler } from '../transport/transport.ts';
import type { CallOptions } from './gateway-call.ts';
import { ResultLines } from './result-lines.ts';
import { SingleRequest } from './single-request.ts';

/** A server-streaming call at the gateway: one request, and a line for each message. */
export class ServerStreamRequest extends SingleRequest {
  readonly #handle: ServerStreamHandler;
  #isInvoked = false;
  readonly #waiting = new WaitingSends();
  readonly #lines: ResultLines;
  /** Of lines that the socket has not taken, and of messages that wait to become lines. */
  #replyBytes = 0;
  #unconvertedBytes = 0;
  #progressAt = 0;
  #isClosed = false;

  constructor(stream: HttpStream, method: RpcMethod, handle: ServerStreamHandler, options: CallOptions) {
    super(stream, method, options);
    this.#handle = handle;
    this.#lines = new ResultLines(method.descriptor.output, {
      write: (json, onTaken) => this.#write(json, onTaken),
      onSent: (isBelowMark) => {
        if (isBelowMark) this.#waiting.drained();
      },
    });
    stream.lasts();
    stream.onDrain = () => {
      if (!this.#lines.isSending) this.#waiting.drained();
    };
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
    this.#lines.whenSent(() => this.sendErrorLine(status));
  }

  protected sweepReply(): void {
    const { limits, sweeps } = this.stream.connection;
    if (this.stream.bufferedBytes === 0) this.#progressAt = sweeps;
    else if ((sweeps - this.#progressAt) * limits.sweepIntervalMs > limits.stalledReplyTimeoutMs) this.stream.destroy();
  }

  protected closed(): void {
    this.stream.connection.replyBytes.giveBack(this.#replyBytes);
    this.#replyBytes = 0;
    this.#isClosed = true;
    this.#lines.close();
    this.#waiting.over();
  }

  #complete(): void {
    if (this.ended) return;
    this.settle();
    if (!this.hasReplied) this.startReply();
    this.#lines.whenSent(() => this.stream.end());
  }

  #fail(error: unknown): void {
    if (this.ended) return;
    this.finish(toStatus(error, this.stream.connection, this.path));
  }

  #send(framed: Buffer): Promise<void> {
    if (this.ended) return Promise.reject(callIsOver());
    if (!this.hasReplied) this.startReply();
    const hasRoom = this.#lines.send(framed);
    this.#countUnconverted();
    if (hasRoom) return Promise.resolve();
    return this.#waiting.wait();
  }

  #write(json: Buffer, onTaken: (() => void) | undefined): boolean {
    this.#count(json.length);
    this.#countUnconverted();
    return this.stream.write(json, () => {
      this.#progressAt = this.stream.connection.sweeps;
      this.#count(-json.length);
      onTaken?.();
    });
  }

  #countUnconverted(): void {
    const bytes = this.#lines.waitingBytes;
    this.#count(bytes - this.#unconvertedBytes);
    this.#unconvertedBytes = bytes;
  }

  #count(bytes: number): void {
    if (this.#isClosed) return;
    this.#replyBytes += bytes;
    this.stream.connection.replyBytes.take(bytes);
  }
}
