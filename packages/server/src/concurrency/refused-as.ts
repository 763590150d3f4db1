import { statusNamed, statusOf } from '../api/status-of.ts';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';

/** Etcd's texts for these; clients compare them. */
const texts = {
  /** The key of a waiter for a lock is gone. */
  sessionExpired: 'mutex: session is expired',
  notLeader: 'election: not leader',
  noLeader: 'election: no leader',
  missingLeader: '"leader" field must be provided',
} as const;

export function refusedAs(name: keyof typeof texts): GrpcStatus {
  return new GrpcStatus(GrpcCode.unknown, texts[name]);
}

/**
 * The same promise with its errors as Lock and Election report them. In etcd these services are clients of the server
 * that they are part of, and errors that pass through such a client keep their texts and lose their codes.
 */
export async function withoutCodes<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const status = statusOf(error);
    if (status === undefined || hasCode(status)) throw error;
    throw new GrpcStatus(GrpcCode.unknown, status.message, status.reason);
  }
}

/** A call that is over gets no reply, and a client of a server that stops goes on at another server. */
function hasCode({ code, message }: GrpcStatus): boolean {
  return code === GrpcCode.cancelled || message === statusNamed('Stopped').message;
}
