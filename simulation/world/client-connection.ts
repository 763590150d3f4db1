/** How a call or stream ended. `code` is a gRPC status code: 0 is OK. */
export interface CallEnd {
  readonly code: number;
  readonly message: string;
}

/** A unary call that did not return a reply. Code 14 (unavailable) without `fromServer`: the outcome is unknown. */
export class CallError extends Error {
  readonly code: number;
  /** Whether the server sent this status. Otherwise the connection broke, or the caller's time limit passed. */
  readonly fromServer: boolean;

  constructor({ code, message }: CallEnd, fromServer: boolean) {
    super(message);
    this.name = 'CallError';
    this.code = code;
    this.fromServer = fromServer;
  }
}

export interface ClientStream {
  write(message: Uint8Array): void;
  /** The client has no more messages. */
  halfClose(): void;
  cancel(): void;
}

export interface ClientStreamListener {
  /** Messages arrive in order. Nothing arrives after `onEnd`. */
  readonly onMessage: (message: Uint8Array) => void;
  readonly onEnd: (end: CallEnd & { readonly fromServer: boolean }) => void;
}

/**
 * One client's connection to one server of the simulated world, on the client's own process: while that process is
 * paused, nothing is received. Messages of one stream arrive in order; calls may overtake each other. Messages are
 * encoded protobuf without the frame of gRPC; `path` is like '/etcdserverpb.KV/Put'.
 */
export interface ClientConnection {
  /** The server's address, for traces. */
  readonly address: string;
  /**
   * Rejects with CallError. Without `timeoutMs` a lost reply is waited for until the connection breaks. `token` names
   * the user who calls.
   */
  call(path: string, request: Uint8Array, timeoutMs?: number, token?: string): Promise<Uint8Array>;
  open(path: string, listener: ClientStreamListener, token?: string): ClientStream;
  /** Breaks the connection: calls without an answer reject, streams end, both as unavailable. */
  close(): void;
}
