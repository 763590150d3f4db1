import type { RpcMethod } from '@tenure/protocol';
import { GrpcCode, GrpcStatus, type HttpStream, deadlineExceeded, toStatus } from '@tenure/grpc-server';
import { type CallOptions, GatewayCall } from './gateway-call.ts';
import { maxDroppedBytes } from './refused-request.ts';
import { RequestDecoder } from './request-decoder.ts';
import { SyntaxFault } from './syntax-fault.ts';

/** After so much of a body the event loop goes round: one chunk may have more, one read of a socket megabytes. */
const bytesPerTurn = 16 * 1024;

/**
 * A call whose request is one JSON value. What follows it in the body is dropped, and an empty body is an empty
 * message, as in grpc-gateway. The call begins when the body is complete.
 */
export abstract class SingleRequest extends GatewayCall {
  readonly #method: RpcMethod;
  readonly #decoder: RequestDecoder;
  readonly #maxMessageBytes: number;
  #bodyBytes = 0;
  #turnBytes = 0;
  #isBodyOver = false;
  /** What is wrong with the request: the answer as soon as its client has sent it. */
  #fault: GrpcStatus | undefined;
  #droppedBytes = 0;
  readonly #beganAt: number;

  constructor(stream: HttpStream, method: RpcMethod, options: CallOptions) {
    super(stream, options);
    this.#method = method;
    this.#maxMessageBytes = stream.connection.limits.maxReceiveBytes;
    this.#decoder = new RequestDecoder(method.descriptor.input, this.#maxMessageBytes);
    this.#beganAt = stream.connection.sweeps;
    stream.onData = (chunk) => this.#received(chunk);
    stream.onEnd = () => this.#complete();
    stream.onSweep = () => this.#sweep();
    stream.onRefuse = (status) => this.refuse(status);
  }

  start(): void {
    // The answer to a call that is late already waits for its request, so that its client reads it.
    if (this.deadlineMs <= performance.now()) this.#fault = deadlineExceeded();
    else this.armDeadline();
  }

  protected get method(): RpcMethod {
    return this.#method;
  }

  /** The request is complete: calls the handler. Called at most once, and not if the call has ended before. */
  protected abstract invoke(request: Buffer): void;

  /** Called by each sweep once the request is complete. */
  protected abstract sweepReply(): void;

  protected finish(status: GrpcStatus): void {
    this.settle();
    this.sendRefusal(status);
  }

  #received(chunk: Buffer): void {
    if (this.#fault !== undefined) {
      this.#droppedBytes += chunk.length;
      if (this.#droppedBytes > maxDroppedBytes) this.refuse(this.#fault);
      return;
    }
    this.#bodyBytes += chunk.length;
    try {
      if (this.#bodyBytes > this.options.maxJsonBytes) throw bodyTooLarge(this.options.maxJsonBytes);
      const room = bytesPerTurn - this.#turnBytes;
      // The chunk is valid until this call returns.
      this.#read(chunk.subarray(0, room), Buffer.from(chunk.subarray(room)));
    } catch (error) {
      this.#fault = this.#statusOf(error);
    }
  }

  /** Reads `part` now and `rest` in the next turns. */
  #read(part: Buffer, rest: Buffer): void {
    if (!this.#decoder.isDone) this.#decoder.read(part);
    this.holdRequest(this.#decoder.heldBytes + rest.length);
    this.#turnBytes += part.length;
    if (this.#turnBytes < bytesPerTurn) return;
    this.#turnBytes = 0;
    this.stream.pause();
    setImmediate(() => this.#nextTurn(rest));
  }

  #nextTurn(rest: Buffer): void {
    if (rest.length > 0 && !this.signal.aborted) {
      try {
        this.#read(rest.subarray(0, bytesPerTurn), rest.subarray(bytesPerTurn));
        // It waits for a turn again.
        if (this.#turnBytes === 0) return;
      } catch (error) {
        this.#fault = this.#statusOf(error);
      }
    }
    this.stream.resume();
  }

  #complete(): void {
    this.#isBodyOver = true;
    try {
      if (this.#fault !== undefined) throw this.#fault;
      this.invoke(this.#request());
    } catch (error) {
      const status = this.#statusOf(error);
      // A reply that has begun cannot become a refusal.
      if (this.ended) this.stream.destroy();
      else this.refuse(status);
    }
  }

  #statusOf(error: unknown): GrpcStatus {
    if (error instanceof SyntaxFault) return new GrpcStatus(GrpcCode.invalidArgument, error.message);
    return toStatus(error, this.stream.connection, this.path);
  }

  #request(): Buffer {
    if (!this.#decoder.finish()) return Buffer.alloc(0);
    const decoded = this.#decoder.take();
    if (decoded.kind === 'tooLarge') throw messageTooLarge(decoded.bytes, this.#maxMessageBytes);
    this.holdRequest(decoded.bytes.length);
    return decoded.bytes;
  }

  #sweep(): void {
    if (this.#isBodyOver) {
      this.sweepReply();
      return;
    }
    const { limits, sweeps } = this.stream.connection;
    const waitedMs = (sweeps - this.#beganAt) * limits.sweepIntervalMs;
    if (waitedMs <= limits.requestTimeoutMs) return;
    if (this.ended) this.stream.destroy();
    else this.refuse(new GrpcStatus(GrpcCode.deadlineExceeded, 'the request did not arrive in time'));
  }
}

/** With the text of Go's gRPC server. */
export function messageTooLarge(bytes: number, maxBytes: number): GrpcStatus {
  const text = `grpc: received message larger than max (${bytes} vs. ${maxBytes})`;
  return new GrpcStatus(GrpcCode.resourceExhausted, text);
}

export function bodyTooLarge(maxBytes: number): GrpcStatus {
  return new GrpcStatus(GrpcCode.resourceExhausted, `the JSON of a message is larger than max (${maxBytes} bytes)`);
}
