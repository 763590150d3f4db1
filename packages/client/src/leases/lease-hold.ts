import { queuePosition } from '../backend/queue-position.ts';
import type { EntryKey, LeaseBackend } from '../backend/lease-backend.ts';
import { ClosedError } from '../errors/closed-error.ts';
import { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { LossReason } from '../errors/lease-lost-error.ts';
import type { Clock } from '../time/clock.ts';
import type { ElapsedTime } from '../time/elapsed-time.ts';
import type { ProcessRef } from '../time/process-ref.ts';
import type { Signal } from '../time/signal.ts';
import { withTimeLimit } from './time-limit.ts';
import type { EntryRemovals } from './entry-removals.ts';
import type { Hold, ReleaseOptions } from './hold.ts';
import type { LeaseEvents } from './lease-events.ts';
import type { OwnEntry, OwnEntryObserver } from './own-entry.ts';
import type { QueueTarget } from './queue-target.ts';
import type { Renewer } from './renewer.ts';

/** A deadline noticed this late proves that the process did not run. */
const stallMs = 250;
/** The time limit of the read that tells `stolen` from `revoked`. */
const lossCauseLimitMs = 250;
const renewLimitMs = 5_000;

export interface LeaseHoldOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly time: ElapsedTime;
  readonly renewer: Renewer;
  readonly removals: EntryRemovals;
  readonly events: LeaseEvents;
  readonly holder: string;
  readonly target: QueueTarget;
  readonly ownEntry: OwnEntry;
  readonly isAutomatic: boolean;
  readonly holdAtLeastMs: number;
  readonly processRef: ProcessRef;
  /** Resolves at once, or when all leases have been released if the manager is being disposed of. */
  readonly settled: () => Promise<void>;
  /** Called once, when it is neither held nor being released any more. */
  readonly onEnd: (hold: LeaseHold) => void;
}

/** After `released`, nothing that happens to the entry is a loss. */
type HoldState = 'held' | 'lost' | 'released';

/** The only implementation of a hold, for entries of every mode. */
export class LeaseHold implements Hold, OwnEntryObserver {
  readonly name: string;
  readonly holder: string;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  readonly entry: EntryKey;
  readonly lost: Promise<LeaseLostError | undefined>;
  readonly #options: LeaseHoldOptions;
  readonly #ownEntry: OwnEntry;
  readonly #acquiredAtMs: number;
  readonly #controller = new AbortController();
  readonly #onEnded: (() => void)[] = [];
  readonly #unref: () => void;
  #resolveLost: (loss: LeaseLostError | undefined) => void = () => {};
  #state: HoldState = 'held';
  #loss: LeaseLostError | undefined;
  #hasEnded = false;
  #releasing: Promise<boolean> | undefined;

  constructor(options: LeaseHoldOptions) {
    const { ownEntry } = options;
    this.#options = options;
    this.#ownEntry = ownEntry;
    this.name = options.target.name;
    this.holder = options.holder;
    this.fencingToken = ownEntry.key.sequence;
    this.ttlMs = ownEntry.ttlMs;
    this.entry = ownEntry.key;
    this.#acquiredAtMs = options.clock.now().monotonicMs;
    this.lost = new Promise((resolve) => (this.#resolveLost = resolve));
    this.#unref = options.processRef.take();
    ownEntry.startHolding(this, options);
    options.renewer.hold(ownEntry, ownEntry.enteredAtMs);
  }

  get signal(): Signal {
    return this.#controller.signal;
  }

  isHeld(): boolean {
    this.deadlineDue();
    return this.#state === 'held';
  }

  /** The loss, if there was one, with the cause known so far. */
  get loss(): LeaseLostError | undefined {
    this.deadlineDue();
    return this.#loss;
  }

  /** The release, if `release` was called. */
  get releasing(): Promise<boolean> | undefined {
    return this.#releasing;
  }

  throwIfLost(): void {
    if (this.isHeld()) return;
    throw this.loss ?? new ClosedError(`the hold of ${JSON.stringify(this.name)}`);
  }

  async renew(): Promise<void> {
    this.throwIfLost();
    const outcome = await this.#options.renewer.renewNow(this.#ownEntry);
    // The caller waits anyway, so it gets the cause of the loss.
    if (!this.isHeld()) await this.lost;
    this.throwIfLost();
    if (outcome.kind === 'failed') throw outcome.error;
  }

  release(options: ReleaseOptions = {}): Promise<boolean> {
    if (this.#releasing !== undefined) return this.#releasing;
    let settle: (result: Promise<boolean>) => void = () => {};
    // Set before a listener is called, because the listener may call this again.
    this.#releasing = new Promise((resolve) => (settle = resolve));
    // A caller that ignores the answer gets no unhandled rejection.
    this.#releasing.catch(() => {});
    settle(this.#release(options));
    return this.#releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => {});
    // The error that follows may end the process, so all other leases must be released first.
    await this.#options.settled();
  }

  /** The manager is being disposed of: work under this hold must stop. */
  close(): void {
    if (this.#state === 'held') this.#controller.abort(new ClosedError('the lease manager'));
  }

  /** Ends it at once, without a release. The entry stays in the queue, since the work may still be running. */
  lose(reason: LossReason, options?: { readonly cause?: unknown }): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    const loss = new LeaseLostError(this.name, reason, options);
    this.#loss = loss;
    this.#options.renewer.remove(this.#ownEntry);
    this.#controller.abort(loss);
    this.#options.events.lost(this, loss);
    if (reason === 'gone') void this.#readLossCause().then((found) => this.#explain(found));
    else this.#explain(loss);
    this.#end();
  }

  /** Calls back once, when it has been lost or its release is over; at once if that is already so. */
  onEnded(callback: () => void): void {
    if (this.#hasEnded) callback();
    else this.#onEnded.push(callback);
  }

  deadlineDue(): void {
    if (this.#state !== 'held' || !this.#ownEntry.hasPassed()) return;
    const { isAutomatic, wasTried, lastError, deadlineMs } = this.#ownEntry;
    const isLate = this.#options.time.readMs() >= deadlineMs + stallMs;
    if (!isAutomatic) this.lose('expired');
    else if (isLate || !wasTried) this.lose('stalled');
    else this.lose('unreachable', lastError === undefined ? undefined : { cause: lastError });
  }

  renewed(): void {
    this.#options.events.renewed(this);
  }

  renewFailed(error: unknown): void {
    this.#options.events.renewFailed(this, error);
  }

  gone(): void {
    this.deadlineDue();
    this.lose('gone');
  }

  /** Reports the loss with its cause. The signal has aborted before. */
  #explain(loss: LeaseLostError): void {
    this.#loss = loss;
    this.#options.events.explained(this, loss);
    this.#resolveLost(loss);
  }

  /** Reads the queue to tell whether another entry holds now. */
  async #readLossCause(): Promise<LeaseLostError> {
    const { backend, clock, target, processRef } = this.#options;
    let reason: LossReason = 'gone';
    try {
      const options = { clock, backend: backend.kind, limitMs: lossCauseLimitMs };
      const entries = await processRef.during(() => {
        return withTimeLimit(options, (signal) => backend.list(this.entry.name, signal));
      });
      const others = entries.map((entry) => ({ ...entry, sequence: 0n }));
      reason = queuePosition(others, { ...target, sequence: 1n }).holds ? 'revoked' : 'stolen';
    } catch {
      // The cause stays unknown; `gone` is true in any case.
    }
    return new LeaseLostError(this.name, reason);
  }

  async #release(options: ReleaseOptions): Promise<boolean> {
    const { events, removals } = this.#options;
    if (this.isHeld()) events.releasing(this);
    if (!this.isHeld()) {
      // The work has ended, so an entry that is still there can go. The caller does not wait for that.
      if (!this.#ownEntry.isGone) removals.removeLater(this.entry);
      return false;
    }
    this.#state = 'released';
    if (options.abortReason !== undefined) this.#controller.abort(options.abortReason);
    try {
      const wasThere = await this.#endEntry({ lazy: options.lazy ?? false });
      events.released(this);
      return wasThere;
    } catch (error) {
      events.releaseFailed(this, error);
      throw error;
    } finally {
      this.#end();
    }
  }

  #end(): void {
    this.#hasEnded = true;
    this.#unref();
    if (this.#state === 'released') this.#resolveLost(undefined);
    this.#options.onEnd(this);
    for (const callback of this.#onEnded.splice(0)) callback();
  }

  async #endEntry(options: { readonly lazy: boolean }): Promise<boolean> {
    const { renewer, removals, clock, holdAtLeastMs } = this.#options;
    // A renewal in flight could arrive after the last one and extend the TTL again.
    const settled = renewer.settled(this.#ownEntry);
    renewer.remove(this.#ownEntry);
    // By the monotonic clock, because a wall clock that jumps ahead would shorten the minimum time.
    const freeAtMs = this.#acquiredAtMs + holdAtLeastMs;
    if (freeAtMs > clock.now().monotonicMs) await settled;
    const restMs = freeAtMs - clock.now().monotonicMs;
    if (restMs > 0) return await this.#keepFor(restMs, options);
    return options.lazy ? false : await removals.remove(this.entry);
  }

  /** Leaves the entry there for this time, and no longer than the backend's minimum TTL requires. */
  async #keepFor(restMs: number, options: { readonly lazy: boolean }): Promise<boolean> {
    const { backend, clock } = this.#options;
    const ttlMs = Math.max(Math.ceil(restMs), backend.limits.minTtlMs);
    const attemptOptions = { clock, backend: backend.kind, limitMs: renewLimitMs };
    const [isThere] = await withTimeLimit(attemptOptions, (signal) => {
      return backend.renew([{ ...this.entry, ttlMs }], signal);
    });
    return options.lazy ? false : (isThere ?? false);
  }
}
