/**
 * The only seam between the server and whoever keeps its log.
 *
 * A log is a sequence of entries (opaque bytes to the engine), indexed densely from 1. A position names a place in it
 * by index AND by the running hash of all entries up to it, so that a log that lost or replaced a suffix is noticed.
 */
export interface Position {
  /** 0 before the first entry. Ours, never an engine's counter. */
  readonly index: number;
  /** Lower-case hex, 32 digits: see `nextPosition`. '0' x 32 before the first entry. */
  readonly hash: string;
}

export interface LoggedEntry {
  readonly position: Position;
  readonly bytes: Uint8Array;
}

/** An entry whose append was acknowledged; its bytes where whoever tells of it has them at hand. */
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
   * Whether other servers may append to this log. If not, whoever has it open leads, for as long as it is open: nothing
   * has to be followed, no other leader has to be waited for, and what was acknowledged has been applied here.
   */
  readonly isShared: boolean;

  /**
   * Appends all of `batch` directly behind `after`, or nothing, also across a crash. Resolves with the new end of the
   * log, and then the batch is durable. One append at a time: the caller awaits one before it begins the next, and an
   * append that is begun while another is out breaks an invariant. An empty batch writes nothing, but its condition
   * is checked.
   *
   * Rejects with EngineError `conflict` (the log does not end at `after`; `tail` says where it ends; nothing was
   * written), `unknown` (the connection broke: read what follows `after` to learn the outcome), or `fatal` (a write
   * or sync failed on this machine: the process must stop, because pages may be clean but lost). The caller must not
   * touch the bytes of `batch` before the promise settles.
   */
  append(batch: readonly Uint8Array[], after: Position): Promise<Position>;

  /**
   * Every durable entry behind `from`, once, in order, in chunks of bounded size; after the last one it waits for
   * more until `signal` aborts (then it ends without an error). It first checks that the entry at `from` has the hash
   * of `from`: otherwise `diverged` (a log that ends before `from` too). If `from` lies below the trim: `trimmed`
   * (load the snapshot). The bytes that it hands out stay as they are. Any number of followers may run at once;
   * closing the engine ends them with `closed`. Nothing is read ahead of the consumer beyond one chunk.
   */
  follow(from: Position, signal: AbortSignal): AsyncIterable<readonly LoggedEntry[]>;

  /**
   * A hint that the log has grown, from somebody who knows: those who follow look at it now. `acknowledged` is where
   * an append ended that the engine has acknowledged to whoever made it, so the log is durable up to there. Who
   * follows and stands directly before it, as the running hash shows, may be given its bytes without a look. An
   * engine that is told as fast by others has none of this.
   */
  lookNow?(acknowledged?: Acknowledged): void;

  /** Where the log ends now. A hint for lag and metrics; on `file` and `memory`, exact. */
  tail(): Promise<Position>;

  /**
   * Stores a snapshot of the state at `position`, atomically: after a crash either the old or the new one is the
   * newest. Written by the leader alone, one at a time. `chunks` is pulled slowly; appends go on meanwhile.
   * `position` must lie in the log (otherwise `diverged`); the start of the log does, so that a log can begin with a
   * restored state. The newest snapshot is the one with the highest position: one saved below it changes nothing, one
   * saved at it replaces it. When `chunks` throws, nothing is stored and its error comes out unchanged. The bytes of
   * a chunk may be reused once the next one is pulled. Rejects with `full` when there is no room for it: nothing is
   * stored then and the log goes on, so a later try may succeed.
   */
  saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void>;

  /**
   * The newest snapshot, or undefined. `chunks` has the same bytes in the same order, cut as they were saved, and may
   * be walked once. A damaged snapshot is refused with EngineError `damaged`, here or while its chunks are read,
   * never skipped silently: the state is complete only when `chunks` has ended without an error.
   */
  loadSnapshot(): Promise<StoredSnapshot | undefined>;

  /**
   * Entries up to and including `index` may be forgotten, at once, later or never. Never beyond the newest snapshot's
   * position (it is clamped to it; without a snapshot nothing is forgotten).
   */
  trim(index: number): Promise<void>;

  /** Bytes that the log and its snapshots take, for Status and metrics. */
  sizeBytes(): number;

  /**
   * Waits for the append or snapshot that is out and gives the log free. Every call after it rejects with `closed`.
   * Idempotent.
   */
  close(): Promise<void>;
}

/** A log that outlives the servers which share it. */
export interface SharedLogEngine extends LogEngine {
  /**
   * Makes an empty log begin behind `position`, with a snapshot of the state there: from then on it is a log that was
   * trimmed up to `position`. All of it at once, also across a crash: until then the log stays empty, and whoever
   * appends to it first wins. Rejects with EngineError `conflict` when it is not empty (`tail` says where it ends) and
   * has changed nothing then; with `unknown` or `unavailable` when the connection broke, and then `tail()` tells
   * whether it was done; and with whatever `chunks` throws.
   */
  seed(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void>;
}
