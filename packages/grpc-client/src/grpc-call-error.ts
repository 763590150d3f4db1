/** The gRPC status codes that a client creates itself, or checks. */
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

/** A call that ended with another status than OK, or without a status. */
export class GrpcCallError extends Error {
  override readonly name = 'GrpcCallError';
  /** The numeric gRPC status code. */
  readonly code: number;
  /** The server's text, or this client's when the server sent none. */
  readonly details: string;
  /**
   * Whether the server may have processed the call. If not, the call has certainly had no effect: there was no
   * connection, or the server reported that it had not begun (REFUSED_STREAM, RFC 9113 section 8.7).
   */
  readonly wasSent: boolean;
  /** The other trailers sent with the status, by lower-case name. */
  readonly trailers: Readonly<Record<string, string>>;

  constructor(code: number, details: string, options: GrpcCallErrorOptions) {
    super(`gRPC status ${code}: ${details}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = details;
    this.wasSent = options.wasSent;
    this.trailers = options.trailers ?? {};
  }
}
