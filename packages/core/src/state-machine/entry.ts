import type { Command, CommandResponse } from './command.ts';
import type { LeaseChange } from '../lease/lease-types.ts';

/** One entry of the log: what one append of the leader decided, in order. */
export interface Entry {
  /** Dense, from 1. Entry n is applied directly after entry n - 1. */
  readonly index: number;
  /**
   * The epoch in which it was appended. An entry of an epoch that is over answers StaleEpoch for each command and
   * changes nothing.
   */
  readonly epoch: number;
  /** Cluster time as the leader stamped it; apply takes the larger of old and new. */
  readonly timeMs: number;
  readonly commands: readonly Command[];
}

export interface Applied {
  /** As many as the entry has commands, in their order. */
  readonly responses: readonly CommandResponse[];
  /** Events of revisions firstRevision..lastRevision are in the history; none when lastRevision < firstRevision. */
  readonly firstRevision: number;
  readonly lastRevision: number;
  /** What happened to leases, in order, for the lease tracker. */
  readonly leaseChanges: readonly LeaseChange[];
}
