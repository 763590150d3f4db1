/**
 * The interface between the server and the storage of its log.
 *
 * A log is a sequence of entries (opaque bytes to the engine), indexed densely from 1. A position identifies a place in
 * it by index AND by the running hash of all entries up to it, so that a log that lost or replaced a suffix is
 * detected.
 */
export interface Position {
  /** 0 before the first entry. Assigned by Tenure, never a counter of the database. */
  readonly index: number;
  /** Lower-case hex, 32 digits: see `nextPosition`. '0' x 32 before the first entry. */
  readonly hash: string;
}

export interface LoggedEntry {
  readonly position: Position;
  readonly bytes: Uint8Array;
}

/** An entry whose append was acknowledged; with its bytes where the caller has them at hand. */
export interface Acknowledged {
  readonly position: Position;
  readonly bytes?: Uint8Array;
}

export interface StoredSnapshot {
  readonly position: Position;
  readonly chunks: AsyncIterable<Uint8Array>;
}

export interface LogEngine {
  readonly name: string;

  /**
   * Whether other servers may append to this log. If not, the server that has it open leads for as long as it is open:
   * it need not follow the log or wait for another leader, and every acknowledged entry has been applied here.
   */
  readonly isShared: boolean;

  /**
   * Appends all of `batch` directly after `after`, or nothing, also across a crash. Resolves with the new end of the
   * log; then the batch is durable. One append at a time: the caller awaits one before it begins the next, and a second
   * concurrent append breaks an invariant. An empty batch writes nothing, but its condition is checked.
   *
   * Rejects with EngineError `conflict` (the log does not end at `after`; `tail` is its end; nothing was written),
   * `unknown` (the connection broke: read the entries after `after` to learn the outcome), or `fatal` (a write or sync
   * failed on this machine: the process must stop, because pages may be clean but lost). The caller must not change the
   * bytes of `batch` before the promise settles.
   */
  append(batch: readonly Uint8Array[], after: Position): Promise<Position>;

  /**
   * Every durable entry after `from`, once, in order, in chunks of bounded size; after the last one it waits for more
   * until `signal` aborts (then it ends without an error). It first checks that the entry at `from` has the hash of
   * `from`: otherwise `diverged` (also for a log that ends before `from`). If `from` is below the trim: `trimmed` (load
   * the snapshot). The returned bytes do not change. Any number of followers may run at once; closing the engine ends
   * them with `closed`. At most one chunk is read ahead of the consumer.
   */
  follow(from: Position, signal: AbortSignal): AsyncIterable<readonly LoggedEntry[]>;

  /**
   * A hint that the log has grown: followers read it now. `acknowledged` is the end of an append that the engine has
   * acknowledged to its caller, so the log is durable up to there. A follower directly before it, as the running hash
   * shows, may get its bytes without a read. An engine that is notified as fast by other means does not implement this.
   */
  lookNow?(acknowledged?: Acknowledged): void;

  /** The current end of the log. A hint for lag and metrics; on `file` and `memory`, exact. */
  tail(): Promise<Position>;

  /**
   * Stores a snapshot of the state at `position`, atomically: after a crash either the old or the new one is the
   * newest. Written by the leader alone, one at a time. `chunks` is pulled slowly; appends continue meanwhile.
   * `position` must be in the log (otherwise `diverged`); the start of the log is, so that a log can begin with a
   * restored state. The newest snapshot is the one with the highest position: saving one below it changes nothing,
   * saving one at it replaces it. When `chunks` throws, nothing is stored and its error is rethrown unchanged. The
   * bytes of a chunk may be reused once the next one is pulled. Rejects with `full` when there is no room for it:
   * nothing is stored then and the log continues, so a later attempt may succeed.
   */
  saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void>;

  /**
   * The newest snapshot, or undefined. `chunks` has the same bytes in the same order, split as they were saved, and may
   * be iterated once. A damaged snapshot is refused with EngineError `damaged`, here or while its chunks are read,
   * never skipped silently: the state is complete only when `chunks` has ended without an error.
   */
  loadSnapshot(): Promise<StoredSnapshot | undefined>;

  /**
   * Entries up to and including `index` may be removed, at once, later or never. Never beyond the newest snapshot's
   * position (`index` is clamped to it; without a snapshot nothing is removed).
   */
  trim(index: number): Promise<void>;

  /** Size of the log and its snapshots, for Status and metrics. */
  sizeBytes(): number;

  /**
   * Waits for the append or snapshot in progress and releases the log. Every later call rejects with `closed`.
   * Idempotent.
   */
  close(): Promise<void>;
}

/** A log that outlives the servers that share it. */
export interface SharedLogEngine extends LogEngine {
  /**
   * Makes an empty log begin after `position`, with a snapshot of the state there: from then on it is a log that was
   * trimmed up to `position`. Atomic, also across a crash: until then the log stays empty, and a concurrent append to
   * it wins. Rejects with EngineError `conflict` when it is not empty (`tail` is its end), having changed nothing; with
   * `unknown` or `unavailable` when the connection broke, and then `tail()` tells whether it was done; and with any
   * error of `chunks`.
   */
  seed(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void>;
}
