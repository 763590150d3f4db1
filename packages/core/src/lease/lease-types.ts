/**
 * A lease as the log knows it. It is *live* in `liveEpoch` (renewals are in that epoch's leader's memory alone) or
 * *dated* (`deadlineMs`, in cluster time). A live lease of an epoch that is over counts as dated at (cluster time
 * when that epoch ended) + ttlMs; nothing is written for that (design, section 6, rule 7). Records are replaced,
 * never changed in place, so that a snapshot can be written while entries are applied.
 */
export interface Lease {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly label: string;
  /** Index of the entry that last granted the lease or made it live. */
  readonly renewIndex: number;
  /** The epoch in which it was last made live. */
  readonly liveEpoch: number;
  /** Cluster time; undefined while it is live. */
  readonly deadlineMs: number | undefined;
}

export type LeaseChange =
  | { readonly kind: 'granted'; readonly lease: Lease }
  | { readonly kind: 'renewed'; readonly lease: Lease }
  | { readonly kind: 'dated'; readonly lease: Lease }
  | { readonly kind: 'removed'; readonly id: bigint; readonly cause: 'revoked' | 'expired' };
