import type { ClientReason } from './client-reason.ts';

/**
 * Why a proposal has no answer:
 * - `overloaded`: too many requests wait for the log; the command was not proposed.
 * - `deposed`: another leader took over; the command is not in the log and will not be.
 * - `timeout`: no outcome within the request timeout; the command may still be applied.
 * - `skipped`: the outcome was in a part of the log in whose place this server loaded a snapshot; the command may have
 *   been applied, or may still be.
 * - `noLeader`: no leader was reached for so long that the client should try another server; nothing was proposed.
 * - `tooLarge`: the leader accepts no message of that size; the command was not proposed.
 * - `stopped`: the server is stopping; the command was not proposed, or its outcome is unknown.
 */
export type ProposalErrorCode = 'overloaded' | 'deposed' | 'timeout' | 'skipped' | 'noLeader' | 'tooLarge' | 'stopped';

export class ProposalError extends Error {
  readonly code: ProposalErrorCode;
  /** With `timeout`: why there was no answer, for the client; undefined when no problem is known. */
  readonly reason: ClientReason | undefined;

  constructor(code: ProposalErrorCode, message: string, reason?: ClientReason) {
    super(reason === undefined ? message : `${message}: ${reason}`);
    this.name = 'ProposalError';
    this.code = code;
    this.reason = reason;
  }
}
