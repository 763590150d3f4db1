/** gRPC's status codes, by their numbers on the wire. */
export const GrpcCode = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;
export type GrpcCode = (typeof GrpcCode)[keyof typeof GrpcCode];

/**
 * The status of a call: thrown by handlers to refuse, sent as trailers by the transport. It is an answer and no fault,
 * so it has no stack: finding that out costs more than most calls.
 */
export class GrpcStatus extends Error {
  readonly code: GrpcCode;
  /**
   * More detail than the text may contain: sent in a trailer of its own (`StatusFormat`). Short, and safe for every
   * client to read.
   */
  readonly reason: string | undefined;

  constructor(code: GrpcCode, message: string, reason?: string) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'GrpcStatus';
    this.code = code;
    this.reason = reason;
  }
}

/** The status of a call that went well. */
export const okStatus: GrpcStatus = Object.freeze(new GrpcStatus(GrpcCode.ok, ''));

/** For handlers whose client has left: the status is not sent. */
export function callIsOver(): GrpcStatus {
  return new GrpcStatus(GrpcCode.cancelled, 'the call is over');
}

/** Ends a streaming call for an invalid message, with the text of Go's gRPC server. */
export function unreadableMessage(reason: string): GrpcStatus {
  return new GrpcStatus(GrpcCode.internal, `grpc: failed to unmarshal the received message: ${reason}`);
}

/** How statuses are written to the wire. */
export interface StatusFormat {
  /** The text that a client gets for a text of a status. */
  readonly textOf: (message: string) => string;
  /** The name of the trailer that has the reason of a status; it is left out without one. */
  readonly reasonTrailer: string | undefined;
  /** Ends the calls that would not end by themselves when the server stops. */
  readonly stopped: GrpcStatus;
}

export const defaultStatusFormat: StatusFormat = Object.freeze({
  textOf: (message: string) => message,
  reasonTrailer: undefined,
  stopped: new GrpcStatus(GrpcCode.unavailable, 'the server is stopping'),
});
