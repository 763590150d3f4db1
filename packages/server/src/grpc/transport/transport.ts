import type { IncomingHttpHeaders } from 'node:http';
import type { GrpcStatus } from './grpc-status.ts';

/**
 * The seam between gRPC as services see it and HTTP/2 as some implementation speaks it.
 *
 * Messages that arrive are plain protobuf bytes, whole, decompressed and within the size limit. They are valid until
 * the handler (or onMessage) returns or, if it returns a promise, until that settles; who keeps one longer copies it,
 * also because it keeps alive all that its connection received in the same read. Messages that leave are *framed*:
 * their first five bytes are left free for gRPC's prefix, which the transport fills in, so that a reply is never
 * copied to be framed (`frameHeadroomBytes`).
 */
export const frameHeadroomBytes = 5;

export interface Call {
  /** '/package.Service/Method' */
  readonly path: string;
  readonly metadata: IncomingHttpHeaders;
  /**
   * Milliseconds of the monotonic clock (performance.now()) at which the call's deadline passes; Infinity without
   * one.
   */
  readonly deadlineMs: number;
  /**
   * Aborts when the client cancels, the connection breaks, the deadline passes or the server shuts down. Made on
   * first use.
   */
  readonly signal: AbortSignal;
}

/**
 * Unary. Throws or rejects with GrpcStatus to refuse; any other error becomes Internal without its text. Sync when it
 * can be.
 */
export type UnaryHandler = (request: Buffer, call: Call) => Buffer | Promise<Buffer>;

/**
 * Server streaming. Returns when all is sent. Messages leave in the order in which they were given to `send`, which
 * resolves when the stream can take more and rejects with GrpcStatus when the call is over; that it resolved does not
 * mean that the client has the message.
 */
export type ServerStreamHandler = (
  request: Buffer,
  call: Call,
  send: (framed: Buffer) => Promise<void>,
) => Promise<void>;

/**
 * One bidirectional call, as the handler sees it. Callbacks are set synchronously by the handler and never called
 * before it returns.
 */
export interface DuplexCall extends Call {
  onMessage: (message: Buffer) => void;
  /** The client half-closed: no message will follow. Called at most once, after the last onMessage. */
  onHalfClose: () => void;
  /** The stream can take more after `send` returned false: all that was sent before has left. */
  onDrain: () => void;
  /** The call is over, however it ended. Called exactly once; nothing may be sent from here on. */
  onClose: () => void;
  /**
   * Sends a message; they arrive in order. False when so much is buffered that no more should be sent until onDrain:
   * the message is taken all the same. After the call is over it does nothing and returns true, since no onDrain
   * would come.
   */
  send(framed: Buffer): boolean;
  /** The largest message that is taken from the client; a larger one ends the call. */
  readonly maxReceiveBytes: number;
  /** Bytes accepted by send but not yet taken by HTTP/2's flow control. */
  readonly bufferedBytes: number;
  /** Stops onMessage and onHalfClose (flow control then holds up the client) until resume, at once and from within. */
  pause(): void;
  resume(): void;
  /** Whoever calls has proved to be a server of this cluster: its connection is not given up for those of clients. */
  trustPeer(): void;
  /** Ends the call once what was sent has left. Calls onClose before it returns; does nothing when the call is over. */
  end(status: GrpcStatus): void;
}

export type BidiHandler = (call: DuplexCall) => void;

export type MethodHandler =
  | { readonly kind: 'unary'; readonly handle: UnaryHandler }
  | { readonly kind: 'serverStream'; readonly handle: ServerStreamHandler }
  | { readonly kind: 'bidi'; readonly handle: BidiHandler };

/** Path to handler. A path that is missing answers Unimplemented. */
export type GrpcRoutes = ReadonlyMap<string, MethodHandler>;
