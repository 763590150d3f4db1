import type { Signal } from '../time/signal.ts';

/**
 * How entries of one name stand to each other, in the order of their tickets. `exclusive` holds when nothing stands
 * before it, `shared` when nothing exclusive does, `permit` when fewer than its permits do; a `member` always holds.
 */
export type EntryMode = 'exclusive' | 'shared' | 'permit' | 'member';

/** What somebody asks for: a place in the line of a name, for as long as it is renewed. */
export interface Claim {
  readonly name: string;
  /** Random and used once. It finds the entry again when the answer to `enter` was lost. */
  readonly id: string;
  /** Who claims, in words for people. Several claims may have one holder. */
  readonly holder: string;
  readonly mode: EntryMode;
  /** How many may hold at once, of mode `permit`; 1 otherwise. */
  readonly permits: number;
  readonly ttlMs: number;
  /** Free text that everybody can read: the value of a candidate, what is known of a member. */
  readonly data: string;
}

/** What names one entry for ever: no other entry of this name ever had or will have this ticket. */
export interface EntryKey {
  readonly name: string;
  readonly id: string;
  readonly ticket: bigint;
}

/** One that stands in the line, waiting or holding. */
export interface Entry extends EntryKey {
  readonly holder: string;
  readonly mode: EntryMode;
  readonly permits: number;
  readonly ttlMs: number;
  readonly data: string;
  /** How long it lives on unless it is renewed, where the backend can tell. A hint for waking up, never a decision. */
  readonly expiresInMs: number | undefined;
}

export interface Renewal extends EntryKey {
  /** From now on it lives so long, be that more or less than before. */
  readonly ttlMs: number;
}

/** `ticket` is undefined when `onlyIfHolds` was asked for and the entry would have had to wait: nothing was entered. */
export interface Entered {
  readonly ticket: bigint | undefined;
  /** The whole line, as `list` gives it, read after the entry was made. */
  readonly entries: readonly Entry[];
}

export interface EnterOptions {
  /** Enter only if the entry holds at once. Somebody who leaves in the same moment may still count as there. */
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
 * Where leases are kept. There is one idea in it: a line of entries for each name, each with a ticket and a limited
 * life. Whoever stands first holds; `standing` says who does. Locks, elections, semaphores and membership are all
 * made of it, so a backend that passes the contract suite (`tenure/testing`) carries them all.
 *
 * **Tickets.** A new entry's ticket is greater than every ticket that the name ever gave, also when all entries are
 * gone since, and after a restart of whatever keeps them. Entries become visible in the order of their tickets: once
 * a list showed ticket n, no smaller ticket appears in a later one that was not there before. So what stands before
 * an entry only ever gets less, and an entry that holds goes on holding until it is gone.
 *
 * **Gone is gone.** An entry ends when it leaves, or when its life ran out and somebody found it so. Who finds it
 * removes it for good before telling anybody that it is gone: it can't be renewed any more, whatever clock steps
 * back. Its life is measured by one clock: the backend's own, or the observer's from when it first saw the last
 * renewal; two machines' wall clocks are never compared. It is not over before `ttlMs` has passed since the enter or
 * the renewal reached the backend.
 *
 * **Linearizable.** `list`, and the list that `enter` returns, show everything that was acknowledged before the call
 * was made. Serve them from a primary.
 *
 * **Unknown outcomes.** A call that fails with a `BackendError` of code `unavailable` may have had its effect, and so
 * may one that was under way when the backend was closed. With every other code it is certain that it had none. The
 * backend repeats neither `enter` nor `update` by itself once it may have been done. Who does not know the ticket of
 * an entry calls `leave` with the ticket 0 and its id.
 *
 * Errors: `BackendError` with its closed set of codes, for everything but an abort, which rejects with the reason of
 * the signal. A call whose signal aborts settles soon, though its effect may still come.
 */
export interface LeaseBackend {
  /** A short word for messages and diagnostics: `memory`, `postgres`. */
  readonly kind: string;
  readonly limits: BackendLimits;
  /** Waiters look again after so long at the latest, since a hint of `watch` may be lost, or never comes. */
  readonly pollIntervalMs: number;

  /** Stands at the end of the line of `claim.name`. */
  enter(claim: Claim, options: EnterOptions): Promise<Entered>;

  /** The line of a name, in the order of tickets, without those whose life has ended. */
  list(name: string, signal: Signal): Promise<readonly Entry[]>;

  /**
   * Many at once, of any names. The answer has one flag each, in the same order: false if it is gone, for ever.
   * Name, id and ticket must all match. Renewing takes no place in the line and changes nothing else.
   */
  renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]>;

  /**
   * Ends one entry, and no other one: whether it was there. Name, id and ticket must all match; a ticket of 0 stands
   * for any. Idempotent.
   */
  leave(entry: EntryKey, signal: Signal): Promise<boolean>;

  /** Replaces the data of an entry: whether it was there. Its place and life stay as they are. */
  update(entry: EntryKey, data: string, signal: Signal): Promise<boolean>;

  /**
   * Calls `onChange` soon after an entry of the name came, changed its data, left or expired, where the backend can
   * tell. A hint: it may be late, doubled or lost, and is no proof of a change. Never throws; what fails is tried
   * again until it is closed. A watch that comes to stand only after this call has returned, at first or after an
   * interruption, hints once then, since it may have missed something.
   */
  watch(name: string, onChange: () => void): LineWatch;

  /** Ends what the backend itself opened; never a pool or client that was handed in. Idempotent. */
  close(): Promise<void>;
}

export interface LineWatch {
  close(): void;
}
