import type { OutgoingHttpHeaders } from 'node:http';
import type { CallConnection } from './connection.ts';
import type { GrpcStatus } from './grpc-status.ts';
import type { HttpRequest } from './call.ts';

/**
 * One request that is not gRPC, with its body and its response as streams, over either version of HTTP. It counts as a
 * call of its connection until its end. Callbacks are set synchronously by the handler and never called before it
 * returns.
 */
export interface HttpStream {
  readonly request: HttpRequest;
  readonly connection: CallConnection;
  /** The chunk is valid until the call returns. */
  onData: (chunk: Buffer) => void;
  /** The body is complete. Called at most once, after the last onData. */
  onEnd: () => void;
  /** All that was written has been taken, after `write` returned false. */
  onDrain: () => void;
  /** Called by each sweep of the connection. */
  onSweep: () => void;
  /** The server ends the stream: it has no memory for its data, or stops and the stream `lasts`. */
  onRefuse: (status: GrpcStatus) => void;
  /** The stream is over, for any reason. Called exactly once. */
  onClose: () => void;
  /** Stops onData and onEnd (the socket then holds up the client) until resume. */
  pause(): void;
  resume(): void;
  /** The stream is ended when the server stops, not waited for. */
  lasts(): void;
  /** Sends status and headers. Once, before the first write. */
  respond(status: number, headers: OutgoingHttpHeaders): void;
  /**
   * False when the buffer is above its mark; it is buffered all the same. `onTaken`: the socket has it, or the stream
   * was closed.
   */
  write(bytes: Buffer, onTaken?: () => void): boolean;
  /** Completes the response. What is left of the body is not read. */
  end(bytes?: Buffer): void;
  /** Closes it without a response. */
  destroy(): void;
  /** Bytes written that the socket has not taken. */
  readonly bufferedBytes: number;
}

/** Who serves them. */
export interface HttpStreams {
  /** Whether requests for this path and query are theirs. */
  serves(target: string): boolean;
  handle(stream: HttpStream): void;
}
