import type { Command, StateMachine } from '@tenure/core';
import { peerpb } from '@tenure/protocol';
import { GrpcStatus } from '@tenure/grpc-server';
import { authKind, decodeCommand } from '../../replica/command-codec.ts';
import type { EncodedCommand } from '../../replica/entry-codec.ts';
import { ProposalError } from '../../replica/proposal-error.ts';
import { isReadOnlyTxn } from '@tenure/core';

/**
 * The commands that a follower may propose: those that clients request, and its own registration. Only the leader of an
 * epoch proposes the other kinds, in that epoch. A new kind of command must be added here.
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
  auth: true,
  claim: false,
  resign: false,
  createCluster: false,
  heartbeat: false,
  expireLeases: false,
  checkpointLeases: false,
  renewLeases: false,
  setTxnLimits: false,
};

/** The error with which a follower learns that a proposal was not appended. */
export type ProposalRefusal = Omit<peerpb.Refusal, '$typeName' | '$unknown' | 'sequence'>;

const { Refusal_Reason: Reason } = peerpb;
export const notAllowed: ProposalRefusal = { reason: Reason.NOT_ALLOWED, code: 0, message: '' };
export const deposed: ProposalRefusal = { reason: Reason.DEPOSED, code: 0, message: '' };

/** Who proposes. */
interface Follower {
  readonly memberId: bigint;
  readonly newestCommand: number;
}

/**
 * Decodes a follower's command. Undefined for a kind of a newer version, which must not enter a log that this server
 * leads, for a kind that this follower must not propose, and for everything of one that knows no users once there are
 * any. Such a follower does not ask who its clients are, and apply takes a compaction, an alarm or a removal without a
 * requester for that of a server. It stops when it reads of the users, which it may not have done yet.
 */
export function commandOfFollower(
  encoded: EncodedCommand,
  { memberId, newestCommand }: Follower,
  { auth }: Pick<StateMachine, 'auth'>,
): Command | undefined {
  if (newestCommand < authKind && auth.revision > 1) return undefined;
  let command: Command;
  try {
    command = decodeCommand(encoded);
  } catch {
    return undefined;
  }
  if (!isForFollowers[command.kind]) return undefined;
  if (command.kind === 'registerMember' && command.id !== memberId) return undefined;
  // A server answers reads itself.
  if (command.kind === 'txn' && isReadOnlyTxn(command.txn)) return undefined;
  return command;
}

/** Converts an error that ended a proposal before its append to the form sent to a follower. */
export function refusalFor(error: unknown): ProposalRefusal {
  if (error instanceof GrpcStatus) return { reason: Reason.REFUSED, code: error.code, message: error.message };
  return isOverload(error) ? { ...deposed, reason: Reason.OVERLOADED } : deposed;
}

export function isOverload(error: unknown): boolean {
  return error instanceof ProposalError && error.code === 'overloaded';
}
