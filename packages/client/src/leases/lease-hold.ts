import { standing } from '../backend/standing.ts';
import type { EntryKey, LeaseBackend } from '../backend/lease-backend.ts';
import { ClosedError } from '../errors/closed-error.ts';
import { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { LossReason } from '../errors/lease-lost-error.ts';
import type { Clock } from '../time/clock.ts';
import type { ElapsedTime } from '../time/elapsed-time.ts';
import type { ProcessRef } from '../time/process-ref.ts';
import type { Signal } from '../time/signal.ts';
import { attempt } from './attempt.ts';
import type { Departures } from './departures.ts';
import type { Hold, ReleaseOptions } from './hold.ts';
import type { LeaseEvents } from './lease-events.ts';
import type { LinePlace, PlaceObserver } from './line-place.ts';
import type { LineSpot } from './line-seeker.ts';
import type { Renewer } from './renewer.ts';

/** A deadline that is noticed so late, or later, is proof that the process did not run. */
const stallMs = 250;
/** How long to ask who took it away. */
const inquestLimitMs = 250;
const keepLimitMs = 5_000;

export interface LeaseHoldOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly time: ElapsedTime;
  readonly renewer: Renewer;
  readonly departures: Departures;
  readonly events: LeaseEvents;
  readonly holder: string;
  readonly spot: LineSpot;
  readonly place: LinePlace;
  readonly isAutomatic: boolean;
  readonly holdAtLeastMs: number;
  readonly processRef: ProcessRef;
  /** Resolves at once, or while the manager is being disposed of when all has been released. */
  readonly settled: () => Promise<void>;
  /** Called once, when it is neither held nor being released any more. */
  readonly onEnd: (hold: LeaseHold) => void;
}

/** `released` was given up by its holder: what becomes of the entry then is no loss. */
type HoldState = 'held' | 'lost' | 'released';

/** The one implementation of a hold, of every kind of line. */
export class LeaseHold implements Hold, PlaceObserver {
  readonly name: string;
  readonly holder: string;
  readonly fencingToken: bigint;
  readonly ttlMs: number;
  readonly entry: EntryKey;
  readonly lost: Promise<LeaseLostError | undefined>;
  readonly #options: LeaseHoldOptions;
  readonly #place: LinePlace;
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
    const { place } = options;
    this.#options = options;
    this.#place = place;
    this.name = options.spot.name;
    this.holder = options.holder;
    this.fencingToken = place.entry.ticket;
    this.ttlMs = place.ttlMs;
    this.entry = place.entry;
    this.#acquiredAtMs = options.clock.now().monotonicMs;
    this.lost = new Promise((resolve) => (this.#resolveLost = resolve));
    this.#unref = options.processRef.take();
    place.holdBy(this, options);
    options.renewer.hold(place, place.enteredAtMs);
  }

  get signal(): Signal {
    return this.#controller.signal;
  }

  isHeld(): boolean {
    this.deadlineDue();
    return this.#state === 'held';
  }

  /** Why it was lost, if it was, as far as that is known by now. */
  get loss(): LeaseLostError | undefined {
    this.deadlineDue();
    return this.#loss;
  }

  /** The release that was asked for, if one was. */
  get releasing(): Promise<boolean> | undefined {
    return this.#releasing;
  }

  throwIfLost(): void {
    if (this.isHeld()) return;
    throw this.loss ?? new ClosedError(`the hold of ${JSON.stringify(this.name)}`);
  }

  async renew(): Promise<void> {
    this.throwIfLost();
    const outcome = await this.#options.renewer.renewNow(this.#place);
    // Whoever asked waits anyway, and hears who has it now.
    if (!this.isHeld()) await this.lost;
    this.throwIfLost();
    if (outcome.kind === 'failed') throw outcome.error;
  }

  release(options: ReleaseOptions = {}): Promise<boolean> {
    if (this.#releasing !== undefined) return this.#releasing;
    let settle: (result: Promise<boolean>) => void = () => {};
    // It is there before a listener is called, which may call this again.
    this.#releasing = new Promise((resolve) => (settle = resolve));
    // Who does not look at the answer is not told of a failure by a crash.
    this.#releasing.catch(() => {});
    settle(this.#release(options));
    return this.#releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => {});
    // What follows may be the end of the process, by an error that the signal of this hold has brought about.
    await this.#options.settled();
  }

  /** The manager is being disposed of: whoever works under this hold must stop. */
  close(): void {
    if (this.#state === 'held') this.#controller.abort(new ClosedError('the lease manager'));
  }

  /** Ends it without a release, at once. Nothing is taken out of the line, since the work may still be going on. */
  lose(reason: LossReason, options?: { readonly cause?: unknown }): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    const loss = new LeaseLostError(this.name, reason, options);
    this.#loss = loss;
    this.#options.renewer.remove(this.#place);
    this.#controller.abort(loss);
    this.#options.events.lost(this, loss);
    if (reason === 'gone') void this.#findOut().then((found) => this.#explain(found));
    else this.#explain(loss);
    this.#end();
  }

  /** Calls back once, when it has been lost or its release is over; at once if that is so. */
  onEnded(callback: () => void): void {
    if (this.#hasEnded) callback();
    else this.#onEnded.push(callback);
  }

  deadlineDue(): void {
    if (this.#state !== 'held' || !this.#place.hasPassed()) return;
    const { isAutomatic, wasTried, lastError, deadlineMs } = this.#place;
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

  /** The loss with its cause, for people: whoever works under the hold has been told to stop before. */
  #explain(loss: LeaseLostError): void {
    this.#loss = loss;
    this.#options.events.explained(this, loss);
    this.#resolveLost(loss);
  }

  /** Who has it now. */
  async #findOut(): Promise<LeaseLostError> {
    const { backend, clock, spot, processRef } = this.#options;
    let reason: LossReason = 'gone';
    try {
      const options = { clock, backend: backend.kind, limitMs: inquestLimitMs };
      const line = await processRef.during(() => {
        return attempt(options, (signal) => backend.list(this.entry.name, signal));
      });
      const others = line.map((entry) => ({ ...entry, ticket: 0n }));
      reason = standing(others, { ...spot, ticket: 1n }).holds ? 'revoked' : 'stolen';
    } catch {
      // Nobody knows, and that it is gone is true in any case.
    }
    return new LeaseLostError(this.name, reason);
  }

  async #release(options: ReleaseOptions): Promise<boolean> {
    const { events, departures } = this.#options;
    if (this.isHeld()) events.releasing(this);
    if (!this.isHeld()) {
      // The work has ended now, so what may be left of the entry can go. Nobody waits for that.
      if (!this.#place.isGone) departures.leaveLater(this.entry);
      return false;
    }
    this.#state = 'released';
    if (options.abortReason !== undefined) this.#controller.abort(options.abortReason);
    try {
      const wasThere = await this.#depart({ lazy: options.lazy ?? false });
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

  async #depart(options: { readonly lazy: boolean }): Promise<boolean> {
    const { renewer, departures, clock, holdAtLeastMs } = this.#options;
    // A renewal under way could come after the last one and make the life longer again.
    const settled = renewer.settled(this.#place);
    renewer.remove(this.#place);
    // Others wait at least so long, so a wall that jumps ahead counts for nothing here.
    const freeAtMs = this.#acquiredAtMs + holdAtLeastMs;
    if (freeAtMs > clock.now().monotonicMs) await settled;
    const restMs = freeAtMs - clock.now().monotonicMs;
    if (restMs > 0) return await this.#keep(restMs, options);
    return options.lazy ? false : await departures.leave(this.entry);
  }

  /** Leaves the entry there for so long, and no longer if that can be. */
  async #keep(restMs: number, options: { readonly lazy: boolean }): Promise<boolean> {
    const { backend, clock } = this.#options;
    const ttlMs = Math.max(Math.ceil(restMs), backend.limits.minTtlMs);
    const attemptOptions = { clock, backend: backend.kind, limitMs: keepLimitMs };
    const [isThere] = await attempt(attemptOptions, (signal) => {
      return backend.renew([{ ...this.entry, ttlMs }], signal);
    });
    return options.lazy ? false : (isThere ?? false);
  }
}
