/**
 * The state of a lease on its leader:
 * - `inMemory`: its deadline is only in memory; a renewal is a write to memory.
 * - `checkpointing`: its checkpoint has been proposed; it is treated as checkpointed from here on.
 * - `checkpointed`: its deadline is in the replicated state; a renewal must go through the log.
 * - `renewing`: the entry that renews it is in flight; renewals wait for it, and the lease does not expire meanwhile.
 * - `expiring`: the entry that expires it is in flight; renewals wait for the outcome.
 */
export const trackedStates = ['inMemory', 'checkpointing', 'checkpointed', 'renewing', 'expiring'] as const;

export type TrackedState = (typeof trackedStates)[number];

/** One lease in the leader's memory. Times are on the lease clock. */
export interface TrackedLease {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly renewIndex: number;
  readonly deadlineMs: number;
  readonly state: TrackedState;
}
