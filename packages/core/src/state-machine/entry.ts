import type { Command, CommandResponse } from './command.ts';
import type { LeaseChange } from '../lease/lease-types.ts';

/** One entry of the log: the commands of one append by the leader, in order. */
export interface Entry {
  /** Dense, from 1. Entry n is applied directly after entry n - 1. */
  readonly index: number;
  /**
   * The epoch in which it was appended. An entry of a past epoch returns StaleEpoch for each command and changes
   * nothing.
   */
  readonly epoch: number;
  /** Cluster time as stamped by the leader; apply takes the larger of old and new. */
  readonly timeMs: number;
  readonly commands: readonly Command[];
}

export interface Applied {
  /** One per command of the entry, in the same order. */
  readonly responses: readonly CommandResponse[];
  /** Events of revisions firstRevision..lastRevision are in the history; none when lastRevision < firstRevision. */
  readonly firstRevision: number;
  readonly lastRevision: number;
  /** Changes of leases, in order, for the lease tracker. */
  readonly leaseChanges: readonly LeaseChange[];
}
