import type { IncomingHttpHeaders } from 'node:http';
import type { GrpcStatus } from './grpc-status.ts';

/**
 * The interface between gRPC services and an implementation of HTTP/2.
 *
 * Incoming messages are plain protobuf bytes, complete, decompressed and within the size limit. They are valid until
 * the handler (or onMessage) returns or, if it returns a promise, until that settles; a handler that keeps one longer
 * copies it, also because it keeps alive everything that its connection received in the same read. Outgoing messages
 * are *framed*: their first five bytes are reserved for gRPC's prefix, which the transport fills in, so that a reply is
 * never copied to be framed (`frameHeadroomBytes`).
 */

/** The connection of a caller: the same object for all calls of a connection, and for no others. */
export interface CallerConnection {
  /** The IP address of the client, without its port; '' when the client had left before its first call. */
  readonly remoteAddress: string;
  /**
   * The common name (CN) in the subject of the client's certificate, where client certificates are required and this
   * one was verified. Undefined without such a certificate, and over HTTP/1.1.
   */
  readonly commonName: string | undefined;
  /**
   * Bytes derived under this label from the keys of the connection, which only the two ends of a TLS 1.3 connection can
   * compute. Undefined on any other connection, and on a closed one.
   */
  keyingMaterial?(label: string, bytes: number): Buffer | undefined;
}

/** A call as services see it. */
export interface Call<Requester = unknown> {
  /** '/package.Service/Method' */
  readonly path: string;
  readonly metadata: IncomingHttpHeaders;
  /**
   * Milliseconds of the monotonic clock (performance.now()) at which the call's deadline passes; Infinity without
   * one.
   */
  readonly deadlineMs: number;
  /**
   * Aborts when the client cancels, the connection breaks, the deadline passes or the server shuts down. Created on
   * first use.
   */
  readonly signal: AbortSignal;
  readonly connection: CallerConnection;
  /** Who makes the call: set by what guards the handlers, and not used here. */
  requester?: Requester | undefined;
}

/** gRPC puts a flag and a length before each message. */
export const frameHeadroomBytes = 5;

/** A reply of at most this size is always built at once. */
export const smallReplyBytes = 64 * 1024;

/** A framed reply that is built piece by piece, each when the socket has taken the previous one. */
export interface PiecewiseReply {
  /** Of all pieces together, headroom included. */
  readonly framedBytes: number;
  /** The first piece begins with the headroom. Not called once all bytes have been returned. */
  nextPiece(): Buffer;
}

/** A reply that may be large, which is built when there is memory for it. */
export interface LargeReply {
  /** The memory that it holds while it waits, besides its request. */
  readonly heldBytes: number;
  /**
   * Called at once, and again while it must wait: returns the framed reply, or its size if that is more than
   * `roomBytes`. Throws GrpcStatus to refuse.
   */
  within(roomBytes: number): Buffer | PiecewiseReply | number;
}

export type Reply = Buffer | LargeReply;

/** A framed reply that exists already, and may be longer than `smallReplyBytes`. */
export function replyOfBytes(framed: Buffer): Reply {
  if (framed.length <= smallReplyBytes) return framed;
  return { heldBytes: framed.length, within: (roomBytes) => (framed.length > roomBytes ? framed.length : framed) };
}

/** The reply, regardless of its size: for callers that do not send it to a client. */
export async function builtReply(reply: Reply): Promise<Buffer> {
  const built = Buffer.isBuffer(reply) ? reply : reply.within(Infinity);
  if (typeof built === 'number') throw new Error('a reply was not built though there was room');
  if (Buffer.isBuffer(built)) return built;
  const whole = Buffer.allocUnsafe(built.framedBytes);
  for (let at = 0; at < whole.length;) {
    at += built.nextPiece().copy(whole, at);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return whole;
}

/**
 * Unary. Throws or rejects with GrpcStatus to refuse; any other error becomes Internal without its text. Synchronous
 * when possible. A reply that may be longer than `smallReplyBytes` is a LargeReply.
 */
export type UnaryHandler<Requester = unknown> = (request: Buffer, call: Call<Requester>) => Reply | Promise<Reply>;

/**
 * Server streaming. Returns when everything is sent. Messages leave in the order of the calls of `send`, which resolves
 * when the stream can take more and rejects with GrpcStatus when the call is over; a resolved send does not mean that
 * the client has the message.
 */
export type ServerStreamHandler<Requester = unknown> = (
  request: Buffer,
  call: Call<Requester>,
  send: (framed: Buffer) => Promise<void>,
) => Promise<void>;

/**
 * One bidirectional call, as the handler sees it. Callbacks are set synchronously by the handler and never called
 * before it returns.
 */
export interface DuplexCall<Requester = unknown> extends Call<Requester> {
  onMessage: (message: Buffer) => void;
  /** The client half-closed: no message will follow. Called at most once, after the last onMessage. */
  onHalfClose: () => void;
  /** The stream can take more after `send` returned false: all earlier messages have been sent. */
  onDrain: () => void;
  /** The call is over, for any reason. Called exactly once; nothing may be sent from here on. */
  onClose: () => void;
  /**
   * Sends a message; they arrive in order. False when the buffer is full and no more should be sent until onDrain: the
   * message is buffered all the same. After the end of the call it does nothing and returns true, since no onDrain
   * would come.
   */
  send(framed: Buffer): boolean;
  /** The largest accepted message of the client; a larger one ends the call. */
  readonly maxReceiveBytes: number;
  /** Bytes accepted by send but not yet taken by HTTP/2's flow control. */
  readonly bufferedBytes: number;
  /** Stops onMessage and onHalfClose (flow control then holds up the client) until resume, at once and from within. */
  pause(): void;
  resume(): void;
  /** The peer is identified as a server of this cluster: its connection is not closed in favour of those of clients. */
  trustPeer(): void;
  /**
   * Ends the call once the messages have been sent. Calls onClose before it returns; does nothing when the call is
   * over.
   */
  end(status: GrpcStatus): void;
}

export type BidiHandler<Requester = unknown> = (call: DuplexCall<Requester>) => void;

export type MethodHandler<Requester = unknown> =
  | { readonly kind: 'unary'; readonly handle: UnaryHandler<Requester> }
  | { readonly kind: 'serverStream'; readonly handle: ServerStreamHandler<Requester> }
  | { readonly kind: 'bidi'; readonly handle: BidiHandler<Requester> };

/** Path to handler. A missing path is answered Unimplemented. */
export type GrpcRoutes<Requester = unknown> = ReadonlyMap<string, MethodHandler<Requester>>;

/** A request that is not gRPC, over either version of HTTP. A body is dropped. */
export interface HttpRequest {
  readonly method: string;
  /** Path and query, as sent by the client. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** Over TLS. */
  readonly isSecure: boolean;
}

export interface HttpReply {
  readonly status: number;
  /** Names in lower case. The length is filled in. */
  readonly headers: Readonly<Record<string, string>>;
  /** Not sent in answer to HEAD. */
  readonly body: string;
}

/** Handles requests that are not gRPC. A rejection becomes 500 without its text. */
export type HttpHandler = (request: HttpRequest) => Promise<HttpReply>;
