/** gRPC's status codes, defined a second time on purpose: the tests share no table with the server. */
export const Code = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** The status of a call, from its trailers. */
export interface CallStatus {
  readonly code: number;
  readonly details: string;
}

/** A call that ended with a status other than OK. */
export class Refusal extends Error implements CallStatus {
  readonly code: number;
  readonly details: string;

  constructor(status: CallStatus) {
    super(`gRPC code ${status.code}: ${status.details}`);
    this.name = 'Refusal';
    this.code = status.code;
    this.details = status.details;
  }
}

/** The status of a call that must be refused; throws when it succeeds. */
export async function refusalOf(call: Promise<unknown>): Promise<CallStatus> {
  try {
    await call;
  } catch (error) {
    if (error instanceof Refusal) return { code: error.code, details: error.details };
    throw error;
  }
  throw new Error('the call succeeded, though it had to be refused');
}
