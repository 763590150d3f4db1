import type { PendingProposal } from './pending-proposals.ts';

/**
 * The way from a follower to the leader, as the replica uses it. It belongs to one epoch; when that is over, so is
 * the link.
 */
export interface LeaderLink {
  readonly epoch: number;
  /**
   * Hands a proposal to the leader. The outcome is read from the log; if the leader says that it did not append it,
   * the link tells the replica (`returned`, `refused`).
   */
  propose(proposal: PendingProposal): void;
  /** An index that everything acknowledged anywhere before this call has at most. Rejects when the link breaks. */
  readIndex(): Promise<number>;
}
