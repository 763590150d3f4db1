import type { Signal } from '../time/signal.ts';

/**
 * Decides whether an entry holds or waits, by the entries with smaller sequence numbers. `exclusive` holds when there
 * are none, `shared` when none of them is exclusive, `permit` when there are fewer than its permits. `member` always
 * holds.
 */
export type EntryMode = 'exclusive' | 'shared' | 'permit' | 'member';

/** A request for an entry in the queue of a name. The entry lives for as long as it is renewed. */
export interface Claim {
  readonly name: string;
  /** Random and used once. It finds the entry again when the answer to `enter` was lost. */
  readonly id: string;
  /** The claimant, as text for people. Several claims may have one holder. */
  readonly holder: string;
  readonly mode: EntryMode;
  /** How many may hold at once, for mode `permit`; 1 otherwise. */
  readonly permits: number;
  readonly ttlMs: number;
  /** Free text that all clients can read: the value of a candidate, the metadata of a member. */
  readonly data: string;
}

/**
 * Identifies one entry forever: no other entry of this name ever has the same sequence number. The SQL tables and the
 * DynamoDB items store `sequence` as `ticket`.
 */
export interface EntryKey {
  readonly name: string;
  readonly id: string;
  readonly sequence: bigint;
}

/** An entry in the queue, waiting or holding. */
export interface Entry extends EntryKey {
  readonly holder: string;
  readonly mode: EntryMode;
  readonly permits: number;
  readonly ttlMs: number;
  readonly data: string;
  /** When the entry expires unless it is renewed, if the backend knows. A hint for waking up, never a decision. */
  readonly expiresInMs: number | undefined;
}

export interface Renewal extends EntryKey {
  /** The new TTL, counted from the renewal. It may be longer or shorter than before. */
  readonly ttlMs: number;
}

/** `sequence` is undefined when `onlyIfHolds` was set and the entry would have had to wait: nothing was entered. */
export interface Entered {
  readonly sequence: bigint | undefined;
  /** The whole queue, as `list` returns it, read after the entry was made. */
  readonly entries: readonly Entry[];
}

export interface EnterOptions {
  /** Enter only if the entry holds at once. An entry that leaves at the same moment may still count. */
  readonly onlyIfHolds: boolean;
  readonly signal: Signal;
}

export interface BackendLimits {
  readonly minTtlMs: number;
  readonly maxTtlMs: number;
  readonly maxNameBytes: number;
  readonly maxDataBytes: number;
}

/**
 * The store of the leases. It keeps one wait queue for each name; each entry has a sequence number and a TTL.
 * `queuePosition` decides from the queue alone which entries hold. Locks, elections, semaphores and membership are all
 * made of this, so a backend that passes the contract suite (`tenure/testing`) supports all of them.
 *
 * **Sequence numbers.** A new entry's number is greater than every number that the name ever had, even if all entries
 * are gone, and after a restart of the store. Entries become visible in the order of their numbers: once a list has
 * shown number n, no later list shows a smaller number that was not there before. So the set of entries ahead of an
 * entry only shrinks, and an entry that holds goes on holding until it is gone.
 *
 * **Gone is final.** An entry ends when it leaves, or when its TTL has passed and a call has noticed that. That call
 * removes the entry durably before any caller is told that it is gone, so it can't be renewed even if a clock steps
 * back. One clock measures the TTL: the backend's own, or the observer's from when it first saw the last renewal. Wall
 * clocks of two machines are never compared. An entry does not expire before `ttlMs` has passed since the enter or the
 * renewal reached the backend.
 *
 * **Linearizable.** `list`, and the list that `enter` returns, show everything that was acknowledged before the call
 * was made. Serve them from a primary.
 *
 * **Unknown outcomes.** A call that fails with a `BackendError` of code `unavailable` may have had its effect. The same
 * is true of a call that was in flight when the backend was closed. Every other code means that the call had no effect.
 * The backend never retries `enter` or `update` by itself if the first attempt may have succeeded. A caller that does
 * not know the sequence number of its entry calls `leave` with the number 0 and the id.
 *
 * Errors: `BackendError` with its closed set of codes, for everything but an abort, which rejects with the reason of
 * the signal. A call whose signal aborts settles soon, though it may still take effect.
 */
export interface LeaseBackend {
  /** A short word for messages and diagnostics: `memory`, `postgres`. */
  readonly kind: string;
  readonly limits: BackendLimits;
  /** The longest time between two reads of a waiter, because a hint of `watch` may be lost or never sent. */
  readonly pollIntervalMs: number;

  /** Appends an entry to the queue of `claim.name`. */
  enter(claim: Claim, options: EnterOptions): Promise<Entered>;

  /** The queue of a name in the order of sequence numbers, without expired entries. */
  list(name: string, signal: Signal): Promise<readonly Entry[]>;

  /**
   * Renews many entries at once, of any names. The answer has one flag for each, in the same order: false if the entry
   * is gone, which is final. Name, id and sequence number must all match. A renewal changes only the expiry.
   */
  renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]>;

  /**
   * Removes exactly one entry, and returns whether it was there. Name, id and sequence number must all match; a number
   * of 0 matches any. Idempotent.
   */
  leave(entry: EntryKey, signal: Signal): Promise<boolean>;

  /** Replaces the data of an entry, and returns whether it was there. Its position and expiry do not change. */
  update(entry: EntryKey, data: string, signal: Signal): Promise<boolean>;

  /**
   * Calls `onChange` soon after an entry of the name was added, changed its data, left or expired, if the backend can
   * detect that. The call is a hint: it may be late, repeated or lost, and proves no change. Never throws; failures are
   * retried until the watch is closed. A watch that is established only after this call has returned, at first or after
   * an interruption, hints once then, because it may have missed a change.
   */
  watch(name: string, onChange: () => void): QueueWatch;

  /** Closes what the backend itself opened; never a pool or client that was passed in. Idempotent. */
  close(): Promise<void>;
}

export interface QueueWatch {
  close(): void;
}
