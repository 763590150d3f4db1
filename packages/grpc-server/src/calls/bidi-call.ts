import type { IncomingHttpHeaders } from 'node:http';
import type { Connection } from './connection.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import { MessageReader } from './message-reader.ts';
import type { RequestHead } from './request-head.ts';
import type { Budget } from '../limits/budget.ts';
import { fillPrefix, minStreamBufferBytes, replyHead, StreamCall, toStatus } from './stream-call.ts';
import type { BidiHandler, DuplexCall } from './call.ts';

/**
 * One bidirectional call. Messages are delivered as they arrive, those of one DATA frame together, and the messages
 * that the handler sends meanwhile leave together.
 */
export class BidiCall extends StreamCall implements DuplexCall {
  onMessage: (message: Buffer) => void = ignore;
  onHalfClose: () => void = ignore;
  onDrain: () => void = ignore;
  onClose: () => void = ignore;
  readonly #handle: BidiHandler;
  readonly #reader: MessageReader;
  #clientFinished = false;
  /** True while messages are delivered: the handler may pause, resume and end from within. */
  #delivering = false;
  #wantsDrain = false;
  #halfCloseTold = false;
  #closeTold = false;

  constructor(
    id: number,
    metadata: IncomingHttpHeaders,
    head: RequestHead,
    connection: Connection,
    handle: BidiHandler,
  ) {
    super(id, metadata, head, connection);
    this.#reader = new MessageReader(connection.limits.maxReceiveBytes, head.encoding);
    this.#handle = handle;
    connection.lastingCalls.add(this);
  }

  start(): void {
    try {
      this.#handle(this);
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
    }
    this.armDeadline();
  }

  get maxReceiveBytes(): number {
    return this.connection.limits.maxReceiveBytes;
  }

  get bufferedBytes(): number {
    return this.pendingBytes;
  }

  send(framed: Buffer): boolean {
    if (this.ended || this.isClosed) return true;
    this.sendHead(replyHead);
    this.holdSend(framed.length);
    this.sendDataLater(fillPrefix(framed));
    const { limits, streamBytes } = this.connection;
    const limitBytes = streamBytes.hasRoom ? limits.maxStreamBufferedBytes : minStreamBufferBytes;
    if (this.pendingBytes < Math.max(limitBytes, minStreamBufferBytes)) return true;
    this.#wantsDrain = true;
    return false;
  }

  pause(): void {
    this.pauseData();
    if (!this.#delivering) this.#holdRequest();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#deliver();
  }

  override held(): void {
    this.#holdRequest();
  }

  override drained(): void {
    if (!this.#wantsDrain || this.ended) return;
    this.#wantsDrain = false;
    try {
      this.onDrain();
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
    }
  }

  trustPeer(): void {
    this.connection.trustPeer();
  }

  end(status: GrpcStatus): void {
    if (this.ended) return;
    this.finish(status.code === GrpcCode.ok ? undefined : status);
    this.#tellClose();
  }

  override refuse(status: GrpcStatus): void {
    if (this.ended) return;
    super.refuse(status);
    this.#tellClose();
  }

  received(chunk: Buffer): void {
    if (this.ended) return;
    this.#reader.push(chunk);
    this.#deliver();
  }

  halfClosed(): void {
    if (this.isClosed) return;
    this.#clientFinished = true;
    this.#deliver();
  }

  protected override get sendBudget(): Budget {
    return this.connection.streamBytes;
  }

  /** A long-lived call may be silent for as long as both sides like. */
  protected sweepUnanswered(): void {}

  protected closed(): void {
    this.connection.lastingCalls.delete(this);
    this.#tellClose();
  }

  #deliver(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    try {
      while (!this.isPaused && !this.ended) {
        const message = this.#reader.next();
        if (message === undefined) break;
        this.onMessage(message);
      }
      if (!this.isPaused && !this.ended) this.#afterMessages();
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
    } finally {
      this.#delivering = false;
    }
    this.#holdRequest();
    if (!this.isPaused && !this.ended) this.session.readHeld(this);
  }

  #afterMessages(): void {
    if (!this.#clientFinished) return;
    if (!this.#reader.atBoundary) throw new GrpcStatus(GrpcCode.internal, 'unexpected EOF');
    if (this.#halfCloseTold) return;
    this.#halfCloseTold = true;
    this.onHalfClose();
  }

  #holdRequest(): void {
    if (this.ended) return;
    try {
      this.holdRequest(this.#reader.heldBytes + this.heldBytes);
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
    }
  }

  #tellClose(): void {
    if (this.#closeTold) return;
    this.#closeTold = true;
    try {
      this.onClose();
    } catch (error) {
      // The stream is gone, so the error is only logged.
      toStatus(error, this.connection, this.path);
    }
  }
}

function ignore(): void {}
