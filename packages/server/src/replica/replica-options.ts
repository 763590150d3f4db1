import type { Applied, Entry } from '@tenure/core';
import type { LogEngine, Position } from '../engines/log-engine.ts';
import type { Clock } from '../time/clock.ts';
import type { ClientReason } from './client-reason.ts';
import type { SnapshotThresholds } from './snapshotter.ts';

export interface ReplicaMetrics {
  appended(append: { entries: number; commands: number; bytes: number; durationMs: number }): void;
  applied(durationMs: number): void;
  snapshotSaved(durationMs: number): void;
}

/** What a replica needs of the server around it, and tells it. */
export interface ReplicaOptions {
  readonly engine: LogEngine;
  readonly metrics: ReplicaMetrics;
  readonly snapshots: SnapshotThresholds;
  /** Names this run of this server, below 2^32: random. */
  readonly run: number;
  readonly requestTimeoutMs: number;
  /**
   * What was accepted is answered before a server stops; on a shared log only if it answers within this, 2 s if it is
   * left out.
   */
  readonly stopGraceMs?: number;
  readonly clock: Clock;
  /** Cluster time for an entry whose append begins now. */
  readonly stampMs: () => number;
  /** Whether this server still has the right to append in the epoch that it leads. Asked before each append. */
  readonly mayAppend: () => boolean;
  /** Whether the leader may answer linearizable reads without asking the log, trusting clocks. Asked for each. */
  readonly mayReadByLease: () => boolean;
  /** Why what waits gets no answer now; undefined when nothing is known to be wrong. */
  readonly problem: () => ClientReason | undefined;
  /** An append of this leader that began then has come back and was applied, with its epoch standing. */
  readonly onAppended: (beganMs: number) => void;
  /** Called after each entry, whose apply began then, before anybody who waits for it is answered. */
  readonly onApplied: (entry: Entry, applied: Applied, beganMs: number) => void;
  /**
   * The log had been trimmed beyond what was applied here, and the state is that of a snapshot now, at this position:
   * `state` is the same object. Called before anybody who waits is answered.
   */
  readonly onLoaded: (position: Position) => void;
  /** Up to where the servers that are linked to this one have all applied the log; Infinity while there are none. */
  readonly slowestFollower: () => number;
  /** A snapshot was not written, and the log was not shortened; it is tried again when it is due next. */
  readonly onSnapshotPutOff: (reason: Error) => void;
  /** This server led, and does not any more. */
  readonly onDeposed: () => void;
  /** An append of this server failed, and not because somebody else has appended. */
  readonly onAppendFailed: (error: Error) => void;
  /** The server must stop: the message says what an operator can do. */
  readonly onFailed: (error: Error) => void;
}
