import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Connection } from './connection.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import { MessageReader } from './message-reader.ts';
import type { RequestHead } from './request-head.ts';
import { fillPrefix, StreamCall, toStatus } from './stream-call.ts';
import type { BidiHandler, DuplexCall } from './transport.ts';

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
  #paused = false;
  #clientFinished = false;
  /** True while messages are delivered: the handler may pause, resume and end from within. */
  #delivering = false;
  #wantsDrain = false;
  #halfCloseTold = false;
  #closeTold = false;
  /** This call's share of the connection's budget, for its unsent bytes. */
  #accountedBytes = 0;

  constructor(
    stream: ServerHttp2Stream,
    metadata: IncomingHttpHeaders,
    head: RequestHead,
    connection: Connection,
    handle: BidiHandler,
  ) {
    super(stream, metadata, head, connection);
    this.#reader = new MessageReader(connection.limits.maxReceiveBytes, head.encoding);
    this.#handle = handle;
    connection.lastingCalls.add(this);
  }

  start(): void {
    const { stream } = this;
    stream.on('drain', () => this.#drained());
    // A stream that is reset while it is paused closes only when its buffered data has been read.
    stream.on('aborted', () => {
      this.ended = true;
      stream.resume();
    });
    try {
      this.#handle(this);
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
    }
    this.armDeadline();
    this.startReading();
  }

  get maxReceiveBytes(): number {
    return this.connection.limits.maxReceiveBytes;
  }

  get bufferedBytes(): number {
    return this.stream.writableLength;
  }

  send(framed: Buffer): boolean {
    const { stream } = this;
    if (this.ended || this.isGone) return true;
    if (!stream.headersSent) this.startReply();
    stream.write(fillPrefix(framed));
    this.#account();
    // When the budget is used up a stream is left node's minimum buffer: below that it never emits drain.
    const { limits, streamBytes } = this.connection;
    const limitBytes = streamBytes.hasRoom ? limits.maxStreamBufferedBytes : 0;
    if (stream.writableLength < Math.max(limitBytes, stream.writableHighWaterMark)) return true;
    this.#wantsDrain = true;
    return false;
  }

  pause(): void {
    this.#paused = true;
    this.stream.pause();
    if (!this.#delivering) this.#holdRequest();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#deliver();
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
    if (this.isGone) return;
    this.#clientFinished = true;
    this.#deliver();
  }

  /** A long-lived call may be silent for as long as both sides like. */
  protected sweepUnanswered(): void {}

  protected closed(): void {
    this.connection.lastingCalls.delete(this);
    this.connection.streamBytes.giveBack(this.#accountedBytes);
    this.#accountedBytes = 0;
    this.#tellClose();
  }

  #deliver(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    this.stream.cork();
    try {
      while (!this.#paused && !this.ended) {
        const message = this.#reader.next();
        if (message === undefined) break;
        this.onMessage(message);
      }
      if (!this.#paused && !this.ended) this.#afterMessages();
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
    } finally {
      this.#delivering = false;
      this.stream.uncork();
    }
    this.#holdRequest();
  }

  #afterMessages(): void {
    if (!this.#clientFinished) {
      if (this.stream.isPaused()) this.stream.resume();
      return;
    }
    if (!this.#reader.atBoundary) throw new GrpcStatus(GrpcCode.internal, 'unexpected EOF');
    if (this.#halfCloseTold) return;
    this.#halfCloseTold = true;
    this.onHalfClose();
  }

  /** A paused call is charged with the whole window that its client may fill: node does not report what arrives. */
  #holdRequest(): void {
    if (this.ended) return;
    const aheadBytes = this.#paused ? this.connection.limits.streamWindowBytes : 0;
    try {
      this.holdRequest(this.#reader.heldBytes + aheadBytes);
    } catch (error) {
      this.refuse(toStatus(error, this.connection, this.path));
    }
  }

  #account(): void {
    const bytes = this.ended ? 0 : this.stream.writableLength;
    this.connection.streamBytes.take(bytes - this.#accountedBytes);
    this.#accountedBytes = bytes;
  }

  #drained(): void {
    this.#account();
    if (!this.#wantsDrain || this.ended) return;
    this.#wantsDrain = false;
    try {
      this.onDrain();
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
