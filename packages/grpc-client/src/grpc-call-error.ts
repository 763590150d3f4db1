/** The status codes of gRPC that a client makes itself, or decides by. */
export const GrpcCode = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export interface GrpcCallErrorOptions {
  readonly wasSent: boolean;
  readonly trailers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** A call that ended with another status than OK, or with none. */
export class GrpcCallError extends Error {
  override readonly name = 'GrpcCallError';
  /** The status code, as gRPC numbers them. */
  readonly code: number;
  /** The server's words alone, or this client's where the server said nothing. */
  readonly details: string;
  /**
   * Whether the server may have seen the call. If not, it has certainly not carried it out: there was no connection, or
   * the server said that it had not begun (REFUSED_STREAM, RFC 9113 section 8.7).
   */
  readonly wasSent: boolean;
  /** What else the server sent with its status, by names in lower case. */
  readonly trailers: Readonly<Record<string, string>>;

  constructor(code: number, details: string, options: GrpcCallErrorOptions) {
    super(`gRPC status ${code}: ${details}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = details;
    this.wasSent = options.wasSent;
    this.trailers = options.trailers ?? {};
  }
}
