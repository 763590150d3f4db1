/**
 * A lease as the log knows it. Either its deadline is in memory in `liveEpoch` (only that epoch's leader knows the
 * renewals), or the lease is checkpointed (`deadlineMs`, in cluster time). A lease whose `liveEpoch` is over counts as
 * checkpointed at (cluster time when that epoch ended) + ttlMs; nothing is written for that. Records are replaced,
 * never changed in place, so that a snapshot can be written while entries are applied.
 */
export interface Lease {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly label: string;
  /** Index of the entry that last granted the lease or moved its deadline into memory. */
  readonly renewIndex: number;
  /** The epoch in which its deadline was last moved into memory. */
  readonly liveEpoch: number;
  /** Cluster time; undefined while the deadline is in memory. */
  readonly deadlineMs: number | undefined;
}

export type LeaseChange =
  | { readonly kind: 'granted'; readonly lease: Lease }
  | { readonly kind: 'renewed'; readonly lease: Lease }
  | { readonly kind: 'checkpointed'; readonly lease: Lease }
  | { readonly kind: 'removed'; readonly id: bigint; readonly cause: 'revoked' | 'expired' };
