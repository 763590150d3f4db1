import type { IncomingHttpHeaders } from 'node:http';
import { errorCode } from '../http2/frame-type.ts';
import type { Connection } from './connection.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import type { RequestHead } from './request-head.ts';
import { SingleRequestCall } from './single-request-call.ts';
import { OutgoingReply, piecesOf } from './outgoing-reply.ts';
import { tooLargeToSend, type UnbuiltReply } from './reply-queue.ts';
import { fillPrefix, okTrailers, replyHead, toStatus } from './stream-call.ts';
import { type LargeReply, type PiecewiseReply, type Reply, smallReplyBytes, type UnaryHandler } from './call.ts';

/** One unary call: receives the request, calls the handler, sends the response. */
export class UnaryCall extends SingleRequestCall implements UnbuiltReply {
  protected readonly firstIsAll = true;
  readonly #handle: UnaryHandler;
  /** Waits for room. */
  #unbuilt: LargeReply | undefined;
  #outgoing: OutgoingReply | undefined;

  constructor(
    id: number,
    metadata: IncomingHttpHeaders,
    head: RequestHead,
    connection: Connection,
    handle: UnaryHandler,
  ) {
    super(id, metadata, head, connection);
    this.#handle = handle;
  }

  start(): void {}

  protected noMessage(what: 'cut off' | 'none'): GrpcStatus {
    return new GrpcStatus(GrpcCode.unknown, what === 'none' ? 'EOF' : 'unexpected EOF');
  }

  protected invoke(request: Buffer): void {
    if (!this.connection.replyBytes.hasRoom) {
      const text = 'too many bytes of replies wait to be read on this connection';
      this.refuse(new GrpcStatus(GrpcCode.resourceExhausted, text));
      return;
    }
    let reply: Reply | Promise<Reply>;
    try {
      reply = this.#handle(request, this);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (reply instanceof Promise) {
      this.armDeadline();
      reply.then(
        (settled) => this.#answer(settled),
        (error: unknown) => this.#fail(error),
      );
      return;
    }
    this.#answer(reply);
    if (this.#unbuilt !== undefined) this.armDeadline();
  }

  get holder(): Connection {
    return this.connection;
  }

  sendWithin(roomBytes: number): number {
    const build = this.#unbuilt;
    if (build === undefined || this.ended || this.isClosed) return 0;
    let built: Buffer | PiecewiseReply | number;
    try {
      built = build.within(roomBytes);
    } catch (error) {
      this.#releaseUnbuilt();
      this.#fail(error);
      return 0;
    }
    const { maxReplyBytes } = this.connection.replies;
    if (typeof built === 'number' && built <= maxReplyBytes) return built;
    this.#releaseUnbuilt();
    if (typeof built !== 'number') this.#send(built);
    else this.refuse(tooLargeToSend(built, maxReplyBytes));
    return 0;
  }

  override drained(): void {
    if (this.#outgoing?.next() === true) this.finish(undefined);
  }

  protected sweepReply(idleMs: number): void {
    // Without a reply yet the call waits for its handler, which may take until the deadline.
    const isSending = this.pendingBytes > 0 || this.#outgoing !== undefined;
    if (isSending && idleMs > this.connection.limits.stalledReplyTimeoutMs) this.reset(errorCode.cancel);
  }

  protected override closed(): void {
    super.closed();
    this.#outgoing?.streamClosed();
    if (this.#unbuilt === undefined) return;
    this.#releaseUnbuilt();
    this.connection.replies.forget(this);
  }

  #releaseUnbuilt(): void {
    if (this.#unbuilt === undefined) return;
    this.connection.resultBytes.giveBack(this.#unbuilt.heldBytes);
    this.#unbuilt = undefined;
  }

  #fail(error: unknown): void {
    const status = toStatus(error, this.connection, this.path);
    if (!this.ended) this.finish(status);
  }

  #answer(reply: Reply): void {
    if (Buffer.isBuffer(reply)) {
      this.#send(reply);
      return;
    }
    if (this.ended || this.isClosed) return;
    if (!this.connection.resultBytes.hasRoom) {
      this.refuse(new GrpcStatus(GrpcCode.resourceExhausted, 'too many large replies wait on this connection'));
      return;
    }
    this.#unbuilt = reply;
    this.connection.resultBytes.take(reply.heldBytes);
    this.connection.replies.admit(this);
  }

  #send(framed: Buffer | PiecewiseReply): void {
    if (this.ended || this.isClosed) return;
    this.lastProgress = this.connection.sweeps;
    if (!Buffer.isBuffer(framed) || framed.length > smallReplyBytes) {
      this.#sendPieces(Buffer.isBuffer(framed) ? piecesOf(framed) : framed);
      return;
    }
    fillPrefix(framed);
    this.settle();
    if (this.session.sender.sendWhole(this, replyHead, framed, okTrailers)) return;
    this.holdSend(framed.length);
    this.sendHead(replyHead);
    this.sendData(framed);
    this.finish(undefined);
  }

  #sendPieces(reply: PiecewiseReply): void {
    const first = fillPrefix(reply.nextPiece(), reply.framedBytes);
    this.settle();
    this.sendHead(replyHead);
    this.#outgoing = new OutgoingReply(this, reply, this.connection.replyBytes);
    this.#outgoing.begin(first);
  }
}
