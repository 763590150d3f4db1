import type { PendingProposal } from './pending-proposals.ts';

/** The link from a follower to the leader, as the replica uses it. A link belongs to one epoch and ends with it. */
export interface LeaderLink {
  readonly epoch: number;
  /**
   * Forwards a proposal to the leader. The outcome is read from the log. If the leader reports that it did not append
   * the proposal, the link tells the replica (`returned`, `refused`).
   */
  propose(proposal: PendingProposal): void;
  /** An index at or above every entry acknowledged anywhere before this call. Rejects when the link breaks. */
  readIndex(): Promise<number>;
}
