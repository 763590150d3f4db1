import type { ClockReading } from '../time/clock.ts';

/** The permit that the leader obtains before each of its appends. */
export interface AppendPermit {
  /** Cluster time for the headers of the entry. */
  readonly timeMs: number;
  /** When the append began. The leader lease counts from this time once the append has returned. */
  readonly began: ClockReading;
}

/** What a replica asks of the leadership before an append or a read, synchronously. */
export interface AppendAuthority {
  /** Called directly before each append of the leader. Undefined: nothing more may be appended in this epoch. */
  beginAppend(): AppendPermit | undefined;
  /** Whether the leader may answer linearizable reads by its clock, without asking the log. */
  mayRead(): boolean;
}
