/**
 * Where a lease stands with its leader:
 * - `live`: renewals are a write to memory.
 * - `dating`: a checkpoint that dates it has been proposed; from here on it counts as dated.
 * - `dated`: its deadline is in the replicated state; a renewal must go through the log.
 * - `renewing`: the entry that makes it live again is out; renewals wait for it, and it does not expire meanwhile.
 * - `expiring`: the entry that expires it is out; renewals wait for the outcome.
 */
export const trackedStates = ['live', 'dating', 'dated', 'renewing', 'expiring'] as const;

export type TrackedState = (typeof trackedStates)[number];

/** What the leader's memory holds of one lease. Times are on the lease clock. */
export interface TrackedLease {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly renewIndex: number;
  readonly deadlineMs: number;
  readonly state: TrackedState;
}
