import type { ClientReason } from './client-reason.ts';

/**
 * Why a proposal has no answer:
 * - `overloaded`: too much waits for the log; the command was not proposed.
 * - `deposed`: another leader came in between; the command is not in the log and will not be.
 * - `timeout`: no outcome within the time that a request may take; it may still be applied.
 * - `noLeader`: no leader was reached for so long that another server should be asked; nothing was proposed.
 * - `tooLarge`: the leader takes no message of that size; the command was not proposed.
 * - `stopped`: the server is stopping; the command was not proposed, or its outcome is unknown.
 */
export type ProposalErrorCode = 'overloaded' | 'deposed' | 'timeout' | 'noLeader' | 'tooLarge' | 'stopped';

export class ProposalError extends Error {
  readonly code: ProposalErrorCode;
  /** With `timeout`: why nobody could answer, for whoever asked; undefined when nothing is known to be wrong. */
  readonly reason: ClientReason | undefined;

  constructor(code: ProposalErrorCode, message: string, reason?: ClientReason) {
    super(reason === undefined ? message : `${message}: ${reason}`);
    this.name = 'ProposalError';
    this.code = code;
    this.reason = reason;
  }
}
