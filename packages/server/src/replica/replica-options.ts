import type { Command } from '@tenure/core';
import type { LogEngine } from '../engines/log-engine.ts';
import type { Clock } from '../time/clock.ts';
import type { AppendAuthority } from './append-permit.ts';
import type { ClientReason } from './client-reason.ts';
import type { ReplicaFact } from './replica-fact.ts';
import type { SnapshotThresholds } from './snapshotter.ts';

export interface ReplicaMetrics {
  appended(append: { entries: number; commands: number; bytes: number; durationMs: number }): void;
  applied(durationMs: number): void;
  snapshotSaved(durationMs: number): void;
}

/** What a replica needs from its server, and what it reports to it. */
export interface ReplicaOptions {
  readonly engine: LogEngine;
  readonly metrics: ReplicaMetrics;
  readonly snapshots: SnapshotThresholds;
  /** A random number below 2^32 that identifies this run of this server. */
  readonly run: number;
  readonly requestTimeoutMs: number;
  /**
   * A stopping server answers the accepted proposals first. On a shared log it waits at most this long for them; 2 s by
   * default.
   */
  readonly stopGraceMs?: number;
  readonly clock: Clock;
  /** Decides whether this server may append in the epoch that it leads, and whether it may read by its clock. */
  readonly authority: AppendAuthority;
  /** Whether a leader may answer linearizable reads without asking the log, trusting clocks. */
  readonly readsByLease: boolean;
  /** Why waiting requests get no answer now; undefined when no problem is known. */
  readonly problem: () => ClientReason | undefined;
  /** The index up to which all linked followers have applied the log; Infinity without followers. */
  readonly slowestFollower: () => number;
  /** Why this server, if it leads, does not append this command, which was proposed here; undefined if it does. */
  readonly refusal?: (command: Command) => Error | undefined;
  /** Limit on proposals that wait for the log; 65,536 by default. */
  readonly maxPendingCommands?: number | undefined;
  /** Must not throw. */
  readonly onFact: (fact: ReplicaFact) => void;
}
