import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Connection } from './connection.ts';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';
import type { RequestHead } from './request-head.ts';
import { SingleRequestCall } from './single-request-call.ts';
import { fillPrefix, toStatus } from './stream-call.ts';
import type { UnaryHandler } from './transport.ts';

/**
 * A reply longer than this is written in pieces, so that a reader who takes some of it is told from one who takes
 * none.
 */
const pieceBytes = 64 * 1024;

/** One unary call: receives the request, calls the handler, sends what it answers. */
export class UnaryCall extends SingleRequestCall {
  readonly #handle: UnaryHandler;
  #replyBytes = 0;

  constructor(
    stream: ServerHttp2Stream,
    metadata: IncomingHttpHeaders,
    head: RequestHead,
    connection: Connection,
    handle: UnaryHandler,
  ) {
    super(stream, metadata, head, connection);
    this.#handle = handle;
  }

  start(): void {
    this.startReading();
  }

  protected invoke(request: Buffer): void {
    if (!this.connection.replyBytes.hasRoom) {
      const text = 'too many bytes of replies wait to be read on this connection';
      this.refuse(new GrpcStatus(GrpcCode.resourceExhausted, text));
      return;
    }
    let reply: Buffer | Promise<Buffer>;
    try {
      reply = this.#handle(request, this);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (reply instanceof Uint8Array) {
      this.#reply(reply);
      return;
    }
    this.armDeadline();
    reply.then(
      (framed) => this.#reply(framed),
      (error: unknown) => this.#fail(error),
    );
  }

  protected sweepReply(idleMs: number): void {
    // Without a reply yet the call waits for its handler, and that may take as long as the deadline allows.
    if (this.#replyBytes > 0 && idleMs > this.connection.limits.stalledReplyTimeoutMs) this.stream.destroy();
  }

  protected override closed(): void {
    super.closed();
    if (this.#replyBytes > 0) this.connection.replyBytes.giveBack(this.#replyBytes);
  }

  #fail(error: unknown): void {
    const status = toStatus(error, this.connection, this.path);
    if (!this.ended) this.finish(status);
  }

  #reply(framed: Buffer): void {
    if (this.ended || this.isGone) return;
    this.lastProgress = this.connection.sweeps;
    this.#replyBytes = framed.length;
    fillPrefix(framed);
    this.startReply();
    if (framed.length > pieceBytes) this.#writePieces(framed);
    else this.stream.write(framed);
    this.finish(undefined);
    this.connection.replyBytes.take(framed.length);
  }

  #writePieces(framed: Buffer): void {
    const progress = () => {
      this.lastProgress = this.connection.sweeps;
    };
    for (let at = 0; at < framed.length; at += pieceBytes) {
      this.stream.write(framed.subarray(at, at + pieceBytes), progress);
    }
  }
}
