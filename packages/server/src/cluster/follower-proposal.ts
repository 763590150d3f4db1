import type { Command } from '@tenure/core';
import { peerpb } from '@tenure/protocol';
import { GrpcStatus } from '../transport/grpc-status.ts';
import { decodeCommand } from '../replica/command-codec.ts';
import type { EncodedCommand } from '../replica/entry-codec.ts';
import { ProposalError } from '../replica/proposal-error.ts';
import { isReadOnlyTxn } from '@tenure/core';

/**
 * What a follower may propose: what clients ask for, and its own registration. The rest is decided by the leader of an
 * epoch alone, in that epoch. A kind that is new has to be given its place here.
 */
const isForFollowers: Readonly<Record<Command['kind'], boolean>> = {
  put: true,
  deleteRange: true,
  txn: true,
  compact: true,
  leaseGrant: true,
  leaseRevoke: true,
  registerMember: true,
  removeMember: true,
  alarm: true,
  claim: false,
  resign: false,
  createCluster: false,
  heartbeat: false,
  expireLeases: false,
  checkpointLeases: false,
  renewLeases: false,
  setTxnLimits: false,
};

/** Why a proposal was not appended, as a follower is told. */
export type ProposalRefusal = Omit<peerpb.Refusal, '$typeName' | '$unknown' | 'sequence'>;

const { Refusal_Reason: Reason } = peerpb;
export const notAllowed: ProposalRefusal = { reason: Reason.NOT_ALLOWED, code: 0, message: '' };
export const deposed: ProposalRefusal = { reason: Reason.DEPOSED, code: 0, message: '' };

/**
 * The command that a follower means; undefined for one of a newer version, which must not come into a log that this
 * server leads, and for what that follower must not propose.
 */
export function commandOfFollower(encoded: EncodedCommand, memberId: bigint): Command | undefined {
  let command: Command;
  try {
    command = decodeCommand(encoded);
  } catch {
    return undefined;
  }
  if (!isForFollowers[command.kind]) return undefined;
  if (command.kind === 'registerMember' && command.id !== memberId) return undefined;
  // A server reads by itself.
  if (command.kind === 'txn' && isReadOnlyTxn(command.txn)) return undefined;
  return command;
}

/** How a follower is told of an error that a proposal ended with before it was appended. */
export function refusalFor(error: unknown): ProposalRefusal {
  if (error instanceof GrpcStatus) return { reason: Reason.REFUSED, code: error.code, message: error.message };
  return isOverload(error) ? { ...deposed, reason: Reason.OVERLOADED } : deposed;
}

export function isOverload(error: unknown): boolean {
  return error instanceof ProposalError && error.code === 'overloaded';
}
