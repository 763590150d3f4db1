import type { EntryKey } from '../backend/lease-backend.ts';
import type { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Signal } from '../time/signal.ts';

export interface ReleaseOptions {
  /** Sends nothing: the renewals stop, and the entry ends when its TTL has passed. */
  readonly lazy?: boolean;
  /**
   * The signal aborts with this reason, before another caller gets the lease. It is for code that releases a hold under
   * which other code works. Without it a release does not abort the signal.
   */
  readonly abortReason?: unknown;
}

/**
 * A lease that this process holds, until its signal aborts. A write to another system is safe only if that system
 * checks the fencing token too.
 */
export interface Hold extends AsyncDisposable {
  readonly name: string;
  /** The holder's name, which all clients can read. */
  readonly holder: string;
  /** Greater than the token of every earlier hold of this name. */
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  /** Its entry in the backend, for a guard in the same store. */
  readonly entry: EntryKey;
  /**
   * Aborts with a LeaseLostError when the hold is lost, before another entry can hold; and with a ClosedError when the
   * manager is disposed of while it is held. A `release` aborts it only with an `abortReason`. It does not wait for the
   * cause to be known: when the entry was found to be gone, the reason of the error is `gone`.
   */
  readonly signal: Signal;
  /**
   * The loss with its cause, once that is known: mostly at once, and within 250 ms where `signal` says `gone` and the
   * queue is read to tell `stolen` from `revoked`. Undefined after a release. Pending while it is held. Never rejects.
   */
  readonly lost: Promise<LeaseLostError | undefined>;
  /** Without I/O. It reads both clocks, so it is right even if no timer could run for a while. */
  isHeld(): boolean;
  /** Throws a LeaseLostError with the cause known so far if it was lost, and a ClosedError if it was released. */
  throwIfLost(): void;
  /**
   * Renews it now. Throws a LeaseLostError when it is lost, and a BackendError when the renewal failed but the lease is
   * still held.
   */
  renew(): Promise<void>;
  /**
   * Releases it, and returns whether its entry was still there. It removes only its own entry, never that of the next
   * holder. Every call gives the answer of the first. Rejects with a BackendError if the backend can't be reached; the
   * removal is then retried a few times in the background. After a loss it returns false at once.
   */
  release(options?: ReleaseOptions): Promise<boolean>;
  /** Like `release`, but never rejects, so it does not hide an error of the work. */
  [Symbol.asyncDispose](): Promise<void>;
}
