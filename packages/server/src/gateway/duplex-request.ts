import type { RpcMethod } from '@tenure/protocol';
import { GrpcCode, type GrpcStatus, type HttpStream, toStatus } from '@tenure/grpc-server';
import type { BidiHandler, DuplexCall } from '../transport/transport.ts';
import { GatewayCall, type CallOptions } from './gateway-call.ts';
import { RequestDecoder } from './request-decoder.ts';
import { ResultLines } from './result-lines.ts';
import { bodyTooLarge, messageTooLarge } from './single-request.ts';
import { SyntaxFault } from './syntax-fault.ts';

/** Messages of one stream in one turn of the event loop. The rest of what has arrived waits for the next turns. */
const maxMessagesPerTurn = 64;

/**
 * A bidirectional call at the gateway: JSON values, one after the other, in a body that stays open as long as its
 * client likes, and a line for each message of the server. A body that is not JSON ends the requests, not the call, as
 * in grpc-gateway.
 */
export class DuplexRequest extends GatewayCall implements DuplexCall {
  onMessage: (message: Buffer) => void = ignore;
  onHalfClose: () => void = ignore;
  onDrain: () => void = ignore;
  onClose: () => void = ignore;
  readonly maxReceiveBytes: number;
  readonly #handle: BidiHandler;
  readonly #decoder: RequestDecoder;
  readonly #lines: ResultLines;
  /** Of the value that is being read. */
  #jsonBytes = 0;
  /** What has arrived and not been read, while the call is paused. */
  #unread: Buffer | undefined;
  #paused = false;
  #delivering = false;
  /** The next turn delivers what is left. */
  #isDeferred = false;
  #clientFinished = false;
  #halfCloseTold = false;
  #closeTold = false;
  #wantsDrain = false;
  #accountedBytes = 0;

  constructor(stream: HttpStream, method: RpcMethod, handle: BidiHandler, options: CallOptions) {
    super(stream, options);
    this.#handle = handle;
    this.maxReceiveBytes = stream.connection.limits.maxReceiveBytes;
    this.#decoder = new RequestDecoder(method.descriptor.input, this.maxReceiveBytes);
    this.#lines = new ResultLines(method.descriptor.output, {
      write: (json, onTaken) => this.#write(json, onTaken),
      onSent: (isBelowMark) => {
        if (isBelowMark) this.#drained();
      },
    });
    stream.lasts();
    stream.onData = (chunk) => this.#received(chunk);
    stream.onEnd = () => this.#finished();
    stream.onDrain = () => this.#drained();
    stream.onRefuse = (status) => this.refuse(status);
  }

  start(): void {
    try {
      this.#handle(this);
    } catch (error) {
      this.refuse(toStatus(error, this.stream.connection, this.path));
    }
    this.armDeadline();
  }

  get bufferedBytes(): number {
    return this.stream.bufferedBytes + this.#lines.waitingBytes;
  }

  send(framed: Buffer): boolean {
    if (this.ended) return true;
    if (!this.hasReplied) this.startReply();
    const isBelowMark = this.#lines.send(framed);
    this.#account();
    const { limits, streamBytes } = this.stream.connection;
    // When the budget is used up a stream is left node's buffer: below its mark it never emits drain.
    if (
      isBelowMark ||
      (!this.#lines.isSending && streamBytes.hasRoom && this.bufferedBytes < limits.maxStreamBufferedBytes)
    )
      return true;
    this.#wantsDrain = true;
    return false;
  }

  pause(): void {
    this.#paused = true;
    this.stream.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#deliver();
  }

  /** Servers speak gRPC among each other. */
  trustPeer(): void {}

  end(status: GrpcStatus): void {
    if (this.ended) return;
    if (status.code !== GrpcCode.ok) {
      this.finish(status);
    } else {
      this.settle();
      if (!this.hasReplied) this.stream.respond(200, this.options.headers);
      this.#lines.whenSent(() => this.stream.end());
    }
    this.#tellClose();
  }

  override refuse(status: GrpcStatus): void {
    if (this.ended) return;
    super.refuse(status);
    this.#tellClose();
  }

  protected finish(status: GrpcStatus): void {
    this.settle();
    this.#lines.whenSent(() => this.sendErrorLine(status));
  }

  protected closed(): void {
    this.#lines.close();
    this.stream.connection.streamBytes.giveBack(this.#accountedBytes);
    this.#accountedBytes = 0;
    this.#unread = undefined;
    this.#tellClose();
  }

  #received(chunk: Buffer): void {
    if (this.ended || this.#clientFinished) return;
    this.#unread = this.#unread === undefined ? chunk : Buffer.concat([this.#unread, chunk]);
    this.#deliver();
    // The chunk is valid until this call returns.
    if (this.#unread !== undefined) this.#unread = Buffer.from(this.#unread);
  }

  #finished(): void {
    this.#clientFinished = true;
    this.#deliver();
  }

  #deliver(): void {
    if (this.#delivering || this.#isDeferred || this.ended) return;
    this.#delivering = true;
    try {
      this.#deliverMessages();
      this.holdRequest(this.#decoder.heldBytes + (this.#unread?.length ?? 0));
    } catch (error) {
      this.refuse(toStatus(error, this.stream.connection, this.path));
    } finally {
      this.#delivering = false;
    }
  }

  #deliverMessages(): void {
    for (let count = 0; !this.#paused && !this.ended; count++) {
      if (count === maxMessagesPerTurn || !this.options.messageTurn.take()) {
        this.#defer();
        return;
      }
      const message = this.#nextMessage();
      if (message === undefined) break;
      this.onMessage(message);
    }
    if (this.#paused || this.ended) return;
    this.stream.resume();
    if (!this.#clientFinished || this.#halfCloseTold) return;
    this.#halfCloseTold = true;
    this.onHalfClose();
  }

  #defer(): void {
    this.#isDeferred = true;
    this.stream.pause();
    setImmediate(() => {
      this.#isDeferred = false;
      this.#deliver();
    });
  }

  /** Undefined when more bytes are needed. */
  #nextMessage(): Buffer | undefined {
    try {
      if (this.#unread !== undefined) {
        const read = this.#decoder.read(this.#unread);
        this.#jsonBytes += read;
        this.#unread = read < this.#unread.length ? this.#unread.subarray(read) : undefined;
      }
      if (this.#jsonBytes > this.options.maxJsonBytes) throw bodyTooLarge(this.options.maxJsonBytes);
      if (!this.#decoder.isDone && !(this.#clientFinished && this.#decoder.finish())) return undefined;
      this.#jsonBytes = 0;
      const decoded = this.#decoder.take();
      if (decoded.kind === 'tooLarge') throw messageTooLarge(decoded.bytes, this.maxReceiveBytes);
      return decoded.bytes;
    } catch (error) {
      if (!(error instanceof SyntaxFault)) throw error;
      // As in grpc-gateway the rest of the body is dropped, and the reason is not told.
      this.#unread = undefined;
      this.#clientFinished = true;
      return undefined;
    }
  }

  #write(json: Buffer, onTaken: (() => void) | undefined): boolean {
    const isBelowMark = this.stream.write(json, onTaken);
    this.#account();
    return isBelowMark;
  }

  #account(): void {
    const bytes = this.ended ? 0 : this.bufferedBytes;
    this.stream.connection.streamBytes.take(bytes - this.#accountedBytes);
    this.#accountedBytes = bytes;
  }

  #drained(): void {
    this.#account();
    if (!this.#wantsDrain || this.#lines.isSending || this.ended) return;
    this.#wantsDrain = false;
    try {
      this.onDrain();
    } catch (error) {
      this.refuse(toStatus(error, this.stream.connection, this.path));
    }
  }

  #tellClose(): void {
    if (this.#closeTold) return;
    this.#closeTold = true;
    try {
      this.onClose();
    } catch (error) {
      // The stream is gone, so the error is only logged.
      toStatus(error, this.stream.connection, this.path);
    }
  }
}

function ignore(): void {}
