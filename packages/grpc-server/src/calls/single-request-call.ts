import type { IncomingHttpHeaders } from 'node:http';
import { frameHeadroomBytes } from './call.ts';
import type { Connection } from './connection.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import { MessageReader } from './message-reader.ts';
import type { RequestHead } from './request-head.ts';
import { deadlineExceeded, StreamCall, toStatus } from './stream-call.ts';

/**
 * A call whose client sends one message: unary and server-streaming ones. The message is delivered when the client has
 * finished; further data is treated as in Go's server, which differs between the two. A message in one DATA frame, as
 * nearly all are, is read from it without a reader.
 */
export abstract class SingleRequestCall extends StreamCall {
  readonly #encoding: string | undefined;
  #message: Buffer | undefined;
  #reader: MessageReader | undefined;

  constructor(id: number, metadata: IncomingHttpHeaders, head: RequestHead, connection: Connection) {
    super(id, metadata, head, connection);
    this.#encoding = head.encoding;
  }

  received(chunk: Buffer, isLast: boolean): void {
    if (this.ended || (this.firstIsAll && this.#message !== undefined)) return;
    const bodyBytes = chunk.length - frameHeadroomBytes;
    if (
      this.#message === undefined &&
      this.#reader === undefined &&
      bodyBytes >= 0 &&
      bodyBytes <= this.connection.limits.maxReceiveBytes &&
      chunk[0] === 0 &&
      chunk.readUInt32BE(1) === bodyBytes
    ) {
      this.#keep(chunk.subarray(frameHeadroomBytes), isLast);
      return;
    }
    try {
      this.#receiveSlowly(chunk);
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
      this.#release();
    }
  }

  halfClosed(): void {
    // A reset also ends the stream's data. The request is then discarded, even if its message is complete.
    if (this.ended || this.isClosed) return;
    const message = this.#message;
    if (this.#reader?.isInBody === true) {
      this.refuse(this.noMessage('cut off'));
    } else if (message === undefined) {
      this.refuse(this.noMessage('none'));
    } else {
      this.#message = undefined;
      this.lastProgress = this.connection.sweeps;
      this.invoke(message);
    }
  }

  protected sweepUnanswered(): void {
    const idleMs = (this.connection.sweeps - this.lastProgress) * this.connection.limits.sweepIntervalMs;
    if (this.remoteEnded) {
      this.sweepReply(idleMs);
    } else if (performance.now() >= this.deadlineMs) {
      this.refuse(deadlineExceeded());
    } else if (idleMs > this.connection.limits.requestTimeoutMs) {
      this.refuse(new GrpcStatus(GrpcCode.deadlineExceeded, 'the request did not arrive in time'));
    }
  }

  /** Whether data after the first message is dropped unread; otherwise it is refused. */
  protected abstract readonly firstIsAll: boolean;

  /** The status of a call whose client finished before its message was complete, or before it began. */
  protected abstract noMessage(what: 'cut off' | 'none'): GrpcStatus;

  /** The request is complete: calls the handler. Called at most once, and not if the call has ended before. */
  protected abstract invoke(request: Buffer): void;

  /** Resets the stream if its client has taken nothing of the reply for too long. */
  protected abstract sweepReply(idleMs: number): void;

  protected override closed(): void {
    this.#release();
  }

  /** A message is used where it lies if its client has finished; else it would keep what arrived with it in memory. */
  #keep(message: Buffer, isLast: boolean): void {
    if (isLast) {
      this.#message = message;
      return;
    }
    try {
      this.holdRequest(message.length);
      this.#message = Buffer.from(message);
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
    }
  }

  #receiveSlowly(chunk: Buffer): void {
    this.#reader ??= new MessageReader(this.connection.limits.maxReceiveBytes, this.#encoding);
    this.#reader.push(chunk);
    for (;;) {
      const message = this.#reader.next();
      if (message === undefined) break;
      if (this.#message !== undefined) throw cardinalityViolation('received multiple request messages for');
      this.#message = message;
      if (this.firstIsAll) {
        this.#reader = undefined;
        this.holdRequest(message.length);
        return;
      }
    }
    this.holdRequest(this.#reader.heldBytes + (this.#message?.length ?? 0));
  }

  #release(): void {
    this.#reader = undefined;
    this.#message = undefined;
  }
}

/** With the text of Go's gRPC server. */
export function cardinalityViolation(what: string): GrpcStatus {
  const text = `cardinality violation: ${what} non-client-streaming RPC`;
  return new GrpcStatus(GrpcCode.internal, text);
}
