import type { EntryKey } from '../backend/lease-backend.ts';
import type { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Signal } from '../time/signal.ts';

export interface ReleaseOptions {
  /** Sends nothing: it is not renewed any more, and ends when its time has run out. */
  readonly lazy?: boolean;
  /**
   * The signal aborts with it, before anybody else gets the lease: for one who releases what somebody else works
   * under. Without it the signal does not abort by a release.
   */
  readonly abortReason?: unknown;
}

/**
 * A lease that this process holds. There is no other proof of holding than having one of these whose signal has not
 * aborted; a write elsewhere is safe only if whoever takes it checks the fencing token as well.
 */
export interface Hold extends AsyncDisposable {
  readonly name: string;
  /** Who holds it, as everybody can read. */
  readonly holder: string;
  /** Greater than that of every hold of this name before, for ever. */
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  /** What names it in the backend, for a guard in the same store. */
  readonly entry: EntryKey;
  /**
   * Aborts with a LeaseLostError when the hold is lost, before anybody else can be granted; and with a ClosedError
   * when the manager is disposed of while it is held. It does not abort by a `release` that gives no reason for that.
   * It does not wait to learn why: when the entry was found to be gone the reason of the error is `gone`.
   */
  readonly signal: Signal;
  /**
   * The loss with its cause, once that is known: mostly at once, and within 250 ms where `signal` says `gone` and the
   * line is read to tell `stolen` from `revoked`. Undefined when it was released. Pending while it is held, and never
   * rejects.
   */
  readonly lost: Promise<LeaseLostError | undefined>;
  /** Without I/O. Looks at both clocks, so it is right also when no timer could run for a while. */
  isHeld(): boolean;
  /** Throws the LeaseLostError when it was lost, as far as it is known, and a ClosedError when it was released. */
  throwIfLost(): void;
  /**
   * Renews it now. Throws a LeaseLostError when it is lost, a BackendError when it could not be renewed and is still
   * held all the same.
   */
  renew(): Promise<void>;
  /**
   * Gives it up: whether its entry was still there. Only ever ends its own entry, never that of the next holder. Each
   * call gives the answer of the first. Rejects with a BackendError if the backend can't be reached; leaving is tried
   * a few more times in the background then. After a loss it answers false at once.
   */
  release(options?: ReleaseOptions): Promise<boolean>;
  /** Like `release`, but never rejects: an error of the work that ends is worth more. */
  [Symbol.asyncDispose](): Promise<void>;
}
