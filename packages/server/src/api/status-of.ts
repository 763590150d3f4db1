import type { CoreError } from '@tenure/core';
import type { ErrorName } from '@tenure/protocol';
import { DecodeError } from '@tenure/codec';
import { AccessError } from '../replica/access-error.ts';
import type { ClientReason } from '../replica/client-reason.ts';
import { ProposalError, type ProposalErrorCode } from '../replica/proposal-error.ts';
import { GrpcCode, GrpcStatus, unreadableMessage } from '@tenure/grpc-server';
import { statusNamed } from '../transport/named-status.ts';

export { statusNamed };

const proposalErrors = {
  overloaded: 'TooManyRequests',
  deposed: 'LeaderChanged',
  timeout: 'Timeout',
  skipped: 'Timeout',
  noLeader: 'NoLeader',
  tooLarge: 'RequestTooLarge',
  stopped: 'Stopped',
} as const satisfies Record<ProposalErrorCode, ErrorName>;

/** A refusal of the core as a gRPC status. */
export function statusOfCoreError(error: CoreError): GrpcStatus {
  return statusNamed(error.code);
}

/** No outcome in time, with the reason where that is known. */
export function timedOut(reason: ClientReason | undefined): GrpcStatus {
  const { code, message } = statusNamed('Timeout');
  return new GrpcStatus(code, message, reason);
}

/** The same promise with its rejection converted to a GrpcStatus. */
export async function answered(read: Promise<void> | undefined): Promise<void> {
  try {
    await read;
  } catch (error) {
    throw statusOf(error) ?? error;
  }
}

/** Any expected failure of a request as a gRPC status; undefined for a bug. */
export function statusOf(error: unknown): GrpcStatus | undefined {
  if (error instanceof GrpcStatus) return error;
  if (error instanceof AccessError) return statusOfCoreError(error.refusal);
  if (error instanceof ProposalError) {
    const status = statusNamed(proposalErrors[error.code]);
    return error.reason === undefined ? status : timedOut(error.reason);
  }
  if (error instanceof DecodeError) {
    // Only transactions nest, and each level is an operation: etcd counts them where this decoder stops.
    if (error.code === 'TooDeep') return statusNamed('TooManyOps');
    return new GrpcStatus(GrpcCode.internal, `grpc: error unmarshalling request: ${error.message}`);
  }
  return undefined;
}

/** The same for a streaming call, for which Go's server has another text when it cannot read a message. */
export function streamStatusOf(error: unknown): GrpcStatus | undefined {
  if (!(error instanceof DecodeError)) return statusOf(error);
  return unreadableMessage(error.message);
}
