import type { Entry, LeaseBackend } from '../backend/lease-backend.ts';
import { AcquireTimeoutError } from '../errors/acquire-timeout-error.ts';
import { ClosedError } from '../errors/closed-error.ts';
import { LeaseHeldError } from '../errors/lease-held-error.ts';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { ElapsedTime } from '../time/elapsed-time.ts';
import { onAbort } from '../time/on-abort.ts';
import type { ProcessRef } from '../time/process-ref.ts';
import type { Signal } from '../time/signal.ts';
import { checkData, checkName, termsOf } from './acquire-options.ts';
import type { AcquireOptions, Terms, WaitMode } from './acquire-options.ts';
import { withTimeLimit } from './time-limit.ts';
import { EntryRemovals } from './entry-removals.ts';
import type { Hold } from './hold.ts';
import { LeaseEvents } from './lease-events.ts';
import { LeaseHold } from './lease-hold.ts';
import type { OwnEntry } from './own-entry.ts';
import { readQueue } from './queue-reader.ts';
import { SharedQueueReads } from './shared-queue-reads.ts';
import { Acquisition } from './acquisition.ts';
import type { QueueTarget } from './queue-target.ts';
import { Renewer } from './renewer.ts';
import { asWork, isInWork } from './work-context.ts';

const readLimitMs = 5_000;
/** How long disposing waits for work that runs under a lease, and again for the backend. */
const closeLimitMs = 10_000;
const releasesAtOnceMax = 64;

interface LeaseRegistryOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly random: Random;
  readonly holder: string;
  readonly ttlMs: number;
  readonly processRef: ProcessRef;
}

/** Settings of an acquisition that the user does not choose. */
interface AcquisitionSettings {
  readonly defaultWait: WaitMode;
  /** Called when the entry turns out to have to wait. */
  readonly onWaiting?: () => void;
  /** Called with the hold before listeners are. */
  readonly onHold?: (hold: LeaseHold) => void;
  /** Where to report this hold; by default the events of the manager. */
  readonly events?: LeaseEvents;
}

/** All holds and acquisitions of one manager, for entries of every mode, and the components that they share. */
export class LeaseRegistry {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly holder: string;
  readonly events: LeaseEvents;
  readonly processRef: ProcessRef;
  readonly #random: Random;
  readonly #ttlMs: number;
  readonly #time: ElapsedTime;
  readonly #renewer: Renewer;
  readonly #removals: EntryRemovals;
  readonly #queueReads: SharedQueueReads;
  readonly #holds = new Set<LeaseHold>();
  readonly #acquisitions = new Map<Acquisition, Promise<OwnEntry>>();
  readonly #works = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  readonly #closed = new AbortController();
  readonly #onReleased: (() => Promise<void> | void)[] = [];
  #close: Promise<void> | undefined;

  constructor(options: LeaseRegistryOptions) {
    this.backend = options.backend;
    this.clock = options.clock;
    this.holder = options.holder;
    this.processRef = options.processRef;
    this.#random = options.random;
    this.#ttlMs = options.ttlMs;
    this.#time = new ElapsedTime(this.clock);
    this.events = new LeaseEvents(this.backend.kind);
    this.#renewer = new Renewer({ backend: this.backend, clock: this.clock, time: this.#time });
    this.#removals = new EntryRemovals({ backend: this.backend, clock: this.clock, processRef: this.processRef });
    this.#queueReads = new SharedQueueReads({ backend: this.backend, clock: this.clock, signal: this.#closed.signal });
  }

  /**
   * Aborts with a ClosedError when the manager is disposed of. Work under a lease gets the signal at once, because
   * disposing waits for its end. All other callers get it when all leases have been released, because they may end the
   * process.
   */
  get closed(): Signal {
    return isInWork() ? this.#closing.signal : this.#closed.signal;
  }

  /** Throws a ClosedError from the moment when disposing began. */
  throwIfClosing(): void {
    this.#closing.signal.throwIfAborted();
  }

  /** The same, but throws only once the caller may be told. */
  async whileOpen(): Promise<void> {
    await this.settled();
    this.throwIfClosing();
  }

  /** Resolves once a caller may be told that the manager is closed; at once while it is open. */
  async settled(): Promise<void> {
    if (!this.#closing.signal.aborted) return;
    const { closed } = this;
    await new Promise<void>((resolve) => void onAbort(closed, resolve));
  }

  /** Throws a UsageError for an invalid name. */
  check(target: QueueTarget): void {
    checkName(target.name, target.queue, this.backend.limits);
  }

  /** Throws a UsageError if it is too long or not well-formed text. */
  checkData(data: string): void {
    checkData(data, this.backend.limits);
  }

  /** Throws a UsageError for invalid options. */
  terms(options: AcquireOptions, defaultWait: WaitMode = 'forever'): Terms {
    return termsOf(options, { ttlMs: this.#ttlMs, wait: defaultWait, limits: this.backend.limits });
  }

  async acquire(target: QueueTarget, options: AcquireOptions, settings: AcquisitionSettings): Promise<LeaseHold> {
    const { backend, clock, holder } = this;
    const events = settings.events ?? this.events;
    if (this.#closing.signal.aborted) await this.whileOpen();
    const terms = this.terms(options, settings.defaultWait);
    const shared = { backend, clock, holder, target, time: this.#time, renewer: this.#renewer };
    const onWaiting = (): void => {
      events.waiting(target.name, holder);
      settings.onWaiting?.();
    };
    const acquisition = new Acquisition({
      ...shared,
      random: this.#random,
      removals: this.#removals,
      queueReads: this.#queueReads,
      terms,
      onWaiting,
    });
    const unref = this.processRef.take();
    const acquiring = acquisition.run();
    this.#acquisitions.set(acquisition, acquiring);
    try {
      const ownEntry = await acquiring;
      const hold = new LeaseHold({
        ...shared,
        removals: this.#removals,
        events,
        ownEntry,
        isAutomatic: terms.isAutomatic,
        holdAtLeastMs: terms.holdAtLeastMs,
        processRef: this.processRef,
        settled: () => this.settled(),
        onEnd: (ended) => this.#holds.delete(ended),
      });
      // Before anything is awaited, because disposing of the manager releases only the holds in this set.
      this.#holds.add(hold);
      if (this.#closing.signal.aborted) {
        await hold.release().catch(ignore);
        await this.whileOpen();
      }
      settings.onHold?.(hold);
      events.acquired(hold);
      return hold;
    } catch (error) {
      if (error instanceof ClosedError) await this.whileOpen();
      throw error;
    } finally {
      this.#acquisitions.delete(acquisition);
      unref();
    }
  }

  /** The hold, or null if the lease does not become free within the wait time. */
  async tryAcquire(
    target: QueueTarget,
    options: AcquireOptions,
    settings: AcquisitionSettings,
  ): Promise<LeaseHold | null> {
    try {
      return await this.acquire(target, options, settings);
    } catch (error) {
      if (error instanceof LeaseHeldError || error instanceof AcquireTimeoutError) return null;
      throw error;
    }
  }

  /**
   * Runs the function while the lease is held. An error of the function is thrown, and never hidden by a failed
   * release. Rejects with the LeaseLostError when the lease was lost before the function had ended.
   */
  async withHold<T>(target: QueueTarget, options: AcquireOptions, work: (hold: Hold) => Promise<T> | T): Promise<T> {
    const hold = await this.acquire(target, options, { defaultWait: 'forever' });
    try {
      const result = await this.track(async () => await work(hold));
      if (hold.loss !== undefined) throw (await hold.lost) ?? hold.loss;
      return result;
    } finally {
      await hold[Symbol.asyncDispose]();
      await this.settled();
    }
  }

  /** Runs work that disposing waits for, up to a limit. */
  async track<T>(work: () => Promise<T>): Promise<T> {
    const running = this.processRef.during(() => asWork(work));
    const settled = running.then(ignore, ignore);
    this.#works.add(settled);
    void settled.then(() => this.#works.delete(settled));
    return await running;
  }

  /** The queue as it is now. */
  async list(target: QueueTarget): Promise<readonly Entry[]> {
    await this.whileOpen();
    return await this.call((signal) => this.backend.list(target.queue, signal));
  }

  /** One call to the backend, with a time limit. */
  async call<T>(call: (signal: Signal) => Promise<T>): Promise<T> {
    const options = { clock: this.clock, backend: this.backend.kind, limitMs: readLimitMs, signal: this.closed };
    return await this.processRef.during(() => withTimeLimit(options, call));
  }

  /** The queue now and after each change. Throws when the signal aborts or the manager is disposed of. */
  async *readQueue(target: QueueTarget, signal: Signal | undefined): AsyncGenerator<readonly Entry[], never> {
    await this.whileOpen();
    const ended = signal === undefined ? this.closed : AbortSignal.any([this.closed, signal]);
    const { backend, clock } = this;
    return yield* readQueue({ backend, clock, queueReads: this.#queueReads, queue: target.queue, signal: ended });
  }

  /**
   * Aborts the holds, waits for work under them to end, up to a limit, and releases everything. Then it calls and
   * awaits `onReleased`, and finally the waiting callers get a ClosedError. Never rejects.
   */
  close(onReleased: () => Promise<void> | void): Promise<void> {
    this.#onReleased.push(onReleased);
    if (this.#close !== undefined) return this.#close;
    let settle: (result: Promise<void>) => void = () => {};
    // Set before the holds abort, because a listener may call this again.
    this.#close = new Promise((resolve) => (settle = resolve));
    settle(this.processRef.during(() => this.#releaseAndReport()));
    return this.#close;
  }

  async #releaseAndReport(): Promise<void> {
    const reason = new ClosedError('the lease manager');
    this.#closing.abort(reason);
    for (const acquisition of this.#acquisitions.keys()) acquisition.stop(reason);
    for (const hold of this.#holds) hold.close();
    await this.#atMost(closeLimitMs, Promise.all(this.#works));
    await this.#atMost(closeLimitMs, this.#releaseAll());
    await Promise.all(this.#onReleased.splice(0).map(async (onReleased) => await onReleased()));
    this.#closed.abort(reason);
  }

  async #releaseAll(): Promise<void> {
    await Promise.allSettled(this.#acquisitions.values());
    const holds = [...this.#holds];
    const releaseNext = async (): Promise<void> => {
      for (let hold = holds.pop(); hold !== undefined; hold = holds.pop()) await hold.release().catch(ignore);
    };
    await Promise.all(Array.from({ length: releasesAtOnceMax }, releaseNext));
    await this.#removals.end();
  }

  async #atMost(limitMs: number, work: Promise<unknown>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.clock.setTimer(limitMs, resolve);
      const end = (): void => {
        timer.cancel();
        resolve();
      };
      work.then(end, end);
    });
  }
}

function ignore(): void {}
