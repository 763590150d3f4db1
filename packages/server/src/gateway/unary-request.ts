import { frameHeadroomBytes } from '@tenure/codec';
import type { RpcMethod } from '@tenure/protocol';
import {
  GrpcCode,
  GrpcStatus,
  type HttpStream,
  type LargeReply,
  type PiecewiseReply,
  type Reply,
  type ReplyHolder,
  type UnbuiltReply,
  piecesOf,
  toStatus,
  tooLargeToSend,
} from '@tenure/grpc-server';
import type { UnaryHandler } from '../transport/transport.ts';
import type { CallOptions } from './gateway-call.ts';
import { ReplyEncoder } from './reply-encoder.ts';
import { SingleRequest } from './single-request.ts';

/** How much of a reply is converted in one turn of the event loop. */
const maxSliceBytes = 16 * 1024;

/** A unary call at the gateway. Its reply is limited and queued as over gRPC, and converted while it is sent. */
export class UnaryRequest extends SingleRequest implements UnbuiltReply {
  readonly #handle: UnaryHandler;
  /** Waits for room. */
  #unbuilt: LargeReply | undefined;
  #replyBytes = 0;
  #isSending = false;
  #progressAt = 0;

  constructor(stream: HttpStream, method: RpcMethod, handle: UnaryHandler, options: CallOptions) {
    super(stream, method, options);
    this.#handle = handle;
  }

  get holder(): ReplyHolder {
    return this.stream.connection;
  }

  sendWithin(roomBytes: number): number {
    const build = this.#unbuilt;
    if (build === undefined || this.ended) return 0;
    let built: Buffer | PiecewiseReply | number;
    try {
      built = build.within(roomBytes);
    } catch (error) {
      this.#releaseUnbuilt();
      this.#fail(error);
      return 0;
    }
    const { maxReplyBytes } = this.stream.connection.replies;
    if (typeof built === 'number' && built <= maxReplyBytes) return built;
    this.#releaseUnbuilt();
    if (typeof built !== 'number') this.#send(built);
    else this.refuse(tooLargeToSend(built, maxReplyBytes));
    return 0;
  }

  protected invoke(request: Buffer): void {
    if (this.ended) return;
    if (!this.stream.connection.replyBytes.hasRoom) {
      const text = 'too many bytes of replies wait to be read on this connection';
      throw new GrpcStatus(GrpcCode.resourceExhausted, text);
    }
    let reply: Reply | Promise<Reply>;
    try {
      reply = this.#handle(request, this);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (!(reply instanceof Promise)) {
      this.#answer(reply);
      return;
    }
    reply.then(
      (settled) => this.#answer(settled),
      (error: unknown) => this.#fail(error),
    );
  }

  protected sweepReply(): void {
    const { limits, sweeps } = this.stream.connection;
    const idleMs = (sweeps - this.#progressAt) * limits.sweepIntervalMs;
    // Without a reply yet the call waits for its handler, which may take until the deadline.
    if (this.#isSending && idleMs > limits.stalledReplyTimeoutMs) this.stream.destroy();
  }

  protected closed(): void {
    this.stream.connection.replyBytes.giveBack(this.#replyBytes);
    this.#replyBytes = 0;
    if (this.#unbuilt === undefined) return;
    this.#releaseUnbuilt();
    this.stream.connection.replies.forget(this);
  }

  #releaseUnbuilt(): void {
    if (this.#unbuilt === undefined) return;
    this.stream.connection.resultBytes.giveBack(this.#unbuilt.heldBytes);
    this.#unbuilt = undefined;
  }

  #fail(error: unknown): void {
    const status = toStatus(error, this.stream.connection, this.path);
    if (!this.ended) this.finish(status);
  }

  #answer(reply: Reply): void {
    if (this.ended) return;
    if (Buffer.isBuffer(reply)) {
      this.#send(reply);
      return;
    }
    const { connection } = this.stream;
    if (!connection.resultBytes.hasRoom) {
      this.refuse(new GrpcStatus(GrpcCode.resourceExhausted, 'too many large replies wait on this connection'));
      return;
    }
    this.#unbuilt = reply;
    connection.resultBytes.take(reply.heldBytes);
    connection.replies.admit(this);
  }

  #send(framed: Buffer | PiecewiseReply): void {
    this.settle();
    const reply = inSlices(Buffer.isBuffer(framed) ? piecesOf(framed) : framed);
    this.#isSending = true;
    this.#progressAt = this.stream.connection.sweeps;
    this.#replyBytes = reply.framedBytes;
    this.stream.connection.replyBytes.take(reply.framedBytes);
    const encoder = new ReplyEncoder(this.method.descriptor.output, reply.framedBytes - frameHeadroomBytes);
    const first = reply.nextPiece();
    const json = Buffer.from(encoder.push(first.subarray(frameHeadroomBytes)));
    if (first.length === reply.framedBytes) {
      this.startReply({ 'content-length': json.length });
      this.stream.end(json);
      return;
    }
    this.startReply();
    this.#sendRest(reply, encoder, first.length, json);
  }

  #sendRest(reply: PiecewiseReply, encoder: ReplyEncoder, readBytes: number, json: Buffer): void {
    this.stream.write(json, () => {
      this.#progressAt = this.stream.connection.sweeps;
      // Closed meanwhile.
      if (this.#replyBytes === 0) return;
      if (readBytes === reply.framedBytes) {
        this.stream.end();
        return;
      }
      setImmediate(() => {
        if (this.#replyBytes === 0) return;
        const piece = reply.nextPiece();
        this.#sendRest(reply, encoder, readBytes + piece.length, Buffer.from(encoder.push(piece)));
      });
    });
  }
}

/** The same reply in pieces that are small enough to convert each in one turn of the event loop. */
function inSlices(reply: PiecewiseReply): PiecewiseReply {
  let piece: Buffer = Buffer.alloc(0);
  return {
    framedBytes: reply.framedBytes,
    nextPiece: () => {
      if (piece.length === 0) piece = reply.nextPiece();
      const slice = piece.subarray(0, maxSliceBytes);
      piece = piece.subarray(slice.length);
      return slice;
    },
  };
}
