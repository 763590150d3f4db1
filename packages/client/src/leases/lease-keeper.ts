import type { Entry, LeaseBackend } from '../backend/lease-backend.ts';
import { AcquireTimeoutError } from '../errors/acquire-timeout-error.ts';
import { ClosedError } from '../errors/closed-error.ts';
import { LeaseHeldError } from '../errors/lease-held-error.ts';
import type { Clock } from '../time/clock.ts';
import { ElapsedTime } from '../time/elapsed-time.ts';
import { onAbort } from '../time/on-abort.ts';
import type { ProcessRef } from '../time/process-ref.ts';
import type { Signal } from '../time/signal.ts';
import { checkData, checkName, termsOf } from './acquire-options.ts';
import type { AcquireOptions, Terms, WaitMode } from './acquire-options.ts';
import { attempt } from './attempt.ts';
import { Departures } from './departures.ts';
import type { Hold } from './hold.ts';
import { LeaseEvents } from './lease-events.ts';
import { LeaseHold } from './lease-hold.ts';
import type { LinePlace } from './line-place.ts';
import { readLine } from './line-reader.ts';
import { LineViews } from './line-views.ts';
import { LineSeeker } from './line-seeker.ts';
import type { LineSpot } from './line-seeker.ts';
import { Renewer } from './renewer.ts';
import { asWork, isInWork } from './work-context.ts';

const readLimitMs = 5_000;
/** How long disposing waits for work that runs under a lease, and again for the backend. */
const closeLimitMs = 10_000;
const releasesAtOnceMax = 64;

interface KeeperOptions {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly holder: string;
  readonly ttlMs: number;
  readonly processRef: ProcessRef;
}

/** How to acquire, beyond what the user says. */
interface SeekOptions {
  readonly defaultWait: WaitMode;
  /** Called when it turns out that there is somebody to wait for. */
  readonly onWaiting?: () => void;
  /** Called with the hold before anybody else is told of it. */
  readonly onHold?: (hold: LeaseHold) => void;
  /** Whom to tell of this hold; by default those who listen to all of the manager's. */
  readonly events?: LeaseEvents;
}

/** All that one manager holds and waits for, of whatever kind of line, and the machinery that they share. */
export class LeaseKeeper {
  readonly backend: LeaseBackend;
  readonly clock: Clock;
  readonly holder: string;
  readonly events: LeaseEvents;
  readonly processRef: ProcessRef;
  readonly #ttlMs: number;
  readonly #time: ElapsedTime;
  readonly #renewer: Renewer;
  readonly #departures: Departures;
  readonly #views: LineViews;
  readonly #holds = new Set<LeaseHold>();
  readonly #seekers = new Map<LineSeeker, Promise<LinePlace>>();
  readonly #works = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  readonly #closed = new AbortController();
  readonly #onReleased: (() => Promise<void> | void)[] = [];
  #close: Promise<void> | undefined;

  constructor(options: KeeperOptions) {
    this.backend = options.backend;
    this.clock = options.clock;
    this.holder = options.holder;
    this.processRef = options.processRef;
    this.#ttlMs = options.ttlMs;
    this.#time = new ElapsedTime(this.clock);
    this.events = new LeaseEvents(this.backend.kind);
    this.#renewer = new Renewer({ backend: this.backend, clock: this.clock, time: this.#time });
    this.#departures = new Departures({ backend: this.backend, clock: this.clock, processRef: this.processRef });
    this.#views = new LineViews({ backend: this.backend, clock: this.clock, signal: this.#closed.signal });
  }

  /**
   * Aborts with a ClosedError when the manager is disposed of: for work under a lease at once, since disposing waits
   * for its end; for everybody else when all has been released, since who is told may end the process.
   */
  get closed(): Signal {
    return isInWork() ? this.#closing.signal : this.#closed.signal;
  }

  /** Throws a ClosedError from the moment when disposing began. */
  throwIfClosing(): void {
    this.#closing.signal.throwIfAborted();
  }

  /** The same, when the caller is to be told. */
  async whileOpen(): Promise<void> {
    await this.settled();
    this.throwIfClosing();
  }

  /** For what ends because all is being closed: resolves when the caller is to be told, at once while all is open. */
  async settled(): Promise<void> {
    if (!this.#closing.signal.aborted) return;
    const { closed } = this;
    await new Promise<void>((resolve) => void onAbort(closed, resolve));
  }

  /** Throws a UsageError if there can be no such name. */
  check(spot: LineSpot): void {
    checkName(spot.name, spot.line, this.backend.limits);
  }

  /** Throws a UsageError if it would be too long, or is no text. */
  checkData(data: string): void {
    checkData(data, this.backend.limits);
  }

  /** Throws a UsageError for options that can't be right. */
  terms(options: AcquireOptions, defaultWait: WaitMode = 'forever'): Terms {
    return termsOf(options, { ttlMs: this.#ttlMs, wait: defaultWait, limits: this.backend.limits });
  }

  async acquire(spot: LineSpot, options: AcquireOptions, seekOptions: SeekOptions): Promise<LeaseHold> {
    const { backend, clock, holder } = this;
    const events = seekOptions.events ?? this.events;
    if (this.#closing.signal.aborted) await this.whileOpen();
    const terms = this.terms(options, seekOptions.defaultWait);
    const shared = { backend, clock, holder, spot, time: this.#time, renewer: this.#renewer };
    const onWaiting = (): void => {
      events.waiting(spot.name, holder);
      seekOptions.onWaiting?.();
    };
    const seeker = new LineSeeker({ ...shared, departures: this.#departures, views: this.#views, terms, onWaiting });
    const leave = this.processRef.take();
    const seeking = seeker.seek();
    this.#seekers.set(seeker, seeking);
    try {
      const place = await seeking;
      const hold = new LeaseHold({
        ...shared,
        departures: this.#departures,
        events,
        place,
        isAutomatic: terms.isAutomatic,
        holdAtLeastMs: terms.holdAtLeastMs,
        processRef: this.processRef,
        settled: () => this.settled(),
        onEnd: (ended) => this.#holds.delete(ended),
      });
      // Before anything is awaited: disposing of the manager waits for the release of all that are here.
      this.#holds.add(hold);
      if (this.#closing.signal.aborted) {
        await hold.release().catch(ignore);
        await this.whileOpen();
      }
      seekOptions.onHold?.(hold);
      events.acquired(hold);
      return hold;
    } catch (error) {
      if (error instanceof ClosedError) await this.whileOpen();
      throw error;
    } finally {
      this.#seekers.delete(seeker);
      leave();
    }
  }

  /** The hold, or null if it is not to be had within the time that the caller wants to wait. */
  async tryAcquire(spot: LineSpot, options: AcquireOptions, seekOptions: SeekOptions): Promise<LeaseHold | null> {
    try {
      return await this.acquire(spot, options, seekOptions);
    } catch (error) {
      if (error instanceof LeaseHeldError || error instanceof AcquireTimeoutError) return null;
      throw error;
    }
  }

  /**
   * Runs the function while the lease is held. What the function throws is thrown, and nothing that comes after it; it
   * rejects with the LeaseLostError when the lease was lost before the function had ended.
   */
  async withHold<T>(spot: LineSpot, options: AcquireOptions, work: (hold: Hold) => Promise<T> | T): Promise<T> {
    const hold = await this.acquire(spot, options, { defaultWait: 'forever' });
    try {
      const result = await this.track(async () => await work(hold));
      if (hold.loss !== undefined) throw (await hold.lost) ?? hold.loss;
      return result;
    } finally {
      await hold[Symbol.asyncDispose]();
      await this.settled();
    }
  }

  /** Disposing waits for the work, for a while. */
  async track<T>(work: () => Promise<T>): Promise<T> {
    const running = this.processRef.during(() => asWork(work));
    const settled = running.then(ignore, ignore);
    this.#works.add(settled);
    void settled.then(() => this.#works.delete(settled));
    return await running;
  }

  /** The line as it is now. */
  async list(spot: LineSpot): Promise<readonly Entry[]> {
    await this.whileOpen();
    return await this.call((signal) => this.backend.list(spot.line, signal));
  }

  /** One call to the backend, with a time limit. */
  async call<T>(call: (signal: Signal) => Promise<T>): Promise<T> {
    const options = { clock: this.clock, backend: this.backend.kind, limitMs: readLimitMs, signal: this.closed };
    return await this.processRef.during(() => attempt(options, call));
  }

  /** The line now and after each change, until the signal aborts or the manager is disposed of, which is thrown. */
  async *read(spot: LineSpot, signal: Signal | undefined): AsyncGenerator<readonly Entry[], never> {
    await this.whileOpen();
    const ended = signal === undefined ? this.closed : AbortSignal.any([this.closed, signal]);
    const { backend, clock } = this;
    return yield* readLine({ backend, clock, views: this.#views, line: spot.line, signal: ended });
  }

  /**
   * Who works is told to stop, and after the work has ended, or when it takes too long, all that is still held is
   * released. Then `onReleased` is called and waited for, and last of all who waits is told. Never rejects.
   */
  close(onReleased: () => Promise<void> | void): Promise<void> {
    this.#onReleased.push(onReleased);
    if (this.#close !== undefined) return this.#close;
    let settle: (result: Promise<void>) => void = () => {};
    // It is there before anybody is told to stop, who may call this again.
    this.#close = new Promise((resolve) => (settle = resolve));
    settle(this.processRef.during(() => this.#releaseAndTell()));
    return this.#close;
  }

  async #releaseAndTell(): Promise<void> {
    const reason = new ClosedError('the lease manager');
    this.#closing.abort(reason);
    for (const seeker of this.#seekers.keys()) seeker.stop(reason);
    for (const hold of this.#holds) hold.close();
    await this.#atMost(closeLimitMs, Promise.all(this.#works));
    await this.#atMost(closeLimitMs, this.#releaseAll());
    await Promise.all(this.#onReleased.splice(0).map(async (onReleased) => await onReleased()));
    this.#closed.abort(reason);
  }

  async #releaseAll(): Promise<void> {
    await Promise.allSettled(this.#seekers.values());
    const holds = [...this.#holds];
    const releaseNext = async (): Promise<void> => {
      for (let hold = holds.pop(); hold !== undefined; hold = holds.pop()) await hold.release().catch(ignore);
    };
    await Promise.all(Array.from({ length: releasesAtOnceMax }, releaseNext));
    await this.#departures.end();
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
