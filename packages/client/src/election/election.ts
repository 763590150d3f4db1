import type { Entry } from '../backend/lease-backend.ts';
import { holders } from '../backend/standing.ts';
import { AcquireTimeoutError } from '../errors/acquire-timeout-error.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { AcquireOptions, WaitMode } from '../leases/acquire-options.ts';
import { untilEligible, whileEligible } from '../leases/eligible.ts';
import { endable } from '../leases/endable.ts';
import type { LeaseHold } from '../leases/lease-hold.ts';
import type { LeaseKeeper } from '../leases/lease-keeper.ts';
import type { WatchOptions } from '../leases/lease-watch.ts';
import type { LineSpot } from '../leases/line-seeker.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { sleep } from '../time/sleep.ts';
import { ElectedLeadership } from './leadership.ts';
import type { Leadership } from './leadership.ts';

/** Before it campaigns again when the backend could not be reached. */
const retryMs = 1_000;

export interface ElectionOptions {
  /** How long a leader stays one after its last renewal, in milliseconds; by default as long as a lease. */
  readonly ttlMs?: number;
  /**
   * While it says no, nobody campaigns through this object, and a leadership that was won through it ends: that of
   * `run` by resigning when the work has ended, another one by its loss. It is asked about every second.
   */
  readonly eligible?: () => boolean;
}

export interface CampaignOptions {
  readonly signal?: Signal | undefined;
  /** By default for ever. */
  readonly wait?: WaitMode;
}

export interface RunOptions {
  /** What everybody reads of the leader; by default its holder. */
  readonly value?: string;
  /** Ends waiting, and tells the work to end. */
  readonly signal?: Signal | undefined;
}

/** Who leads, as it was seen. */
export interface Leader {
  readonly holder: string;
  readonly value: string;
  readonly fencingToken: bigint;
}

/** One leader at a time, of all who campaign under one name, in the order of coming. */
export interface Election {
  readonly name: string;
  /** Waits until this candidate is elected. Errors are those of `acquire` of the manager. */
  campaign(value: string, options?: CampaignOptions): Promise<Leadership>;
  /** Null while there is none. It may have changed by the time the answer is here. */
  leader(): Promise<Leader | null>;
  /**
   * The leader now, and then each new leader or value, and null for a vacancy. Who is slow to ask gets the latest.
   * Outages are waited through, and it ends by an error only, as `watch` of the manager does.
   */
  observe(options?: WatchOptions): AsyncIterable<Leader | null>;
  /**
   * Campaigns and does the work while leading, and campaigns again after a loss, or once it is eligible again, until
   * the work ends while it leads: then it resigns and gives the result, or throws what the work threw. The signal that
   * the work gets aborts on a loss, when this stops being eligible and when `options.signal` aborts; the next leader
   * waits for the work to end, as long as the leadership lasts. What the work does after a loss counts for nothing.
   */
  run<T>(work: (leadership: Leadership, signal: Signal) => Promise<T> | T, options?: RunOptions): Promise<T>;
}

/** Throws a UsageError if there can be no such name. */
export function createElection(keeper: LeaseKeeper, name: string, options: ElectionOptions = {}): Election {
  const spot: LineSpot = { line: `election/${name}`, name, mode: 'exclusive', permits: 1 };
  keeper.check(spot);
  return new LineElection(keeper, spot, options);
}

class LineElection implements Election {
  readonly name: string;
  readonly #keeper: LeaseKeeper;
  readonly #spot: LineSpot;
  readonly #options: ElectionOptions;

  constructor(keeper: LeaseKeeper, spot: LineSpot, options: ElectionOptions) {
    this.name = spot.name;
    this.#keeper = keeper;
    this.#spot = spot;
    this.#options = options;
  }

  async campaign(value: string, options: CampaignOptions = {}): Promise<Leadership> {
    const { hold, leadership } = await this.#keeper.processRef.during(() => this.#campaign(value, options));
    const { eligible } = this.#options;
    if (eligible !== undefined) {
      // The caller works by it, and nobody knows when that has ended: so it is lost, and its entry stays until then.
      const { clock, closed } = this.#keeper;
      const watched = whileEligible({ clock, eligible, signal: closed });
      hold.onEnded(() => watched.end());
      onAbort(watched.signal, () => hold.lose('revoked', { cause: watched.signal.reason }));
    }
    return leadership;
  }

  async leader(): Promise<Leader | null> {
    return leaderOf(await this.#keeper.list(this.#spot));
  }

  observe(options: WatchOptions = {}): AsyncIterable<Leader | null> {
    const { processRef } = this.#keeper;
    return endable({ signal: options.signal, processRef }, (signal) => this.#observe(signal));
  }

  async run<T>(work: (leadership: Leadership, signal: Signal) => Promise<T> | T, options: RunOptions = {}): Promise<T> {
    try {
      return await this.#keeper.processRef.during(() => this.#run(work, options));
    } finally {
      await this.#keeper.settled();
    }
  }

  async #run<T>(work: (leadership: Leadership, signal: Signal) => Promise<T> | T, options: RunOptions): Promise<T> {
    const { value = this.#keeper.holder, signal } = options;
    const stopped = signal === undefined ? this.#keeper.closed : AbortSignal.any([signal, this.#keeper.closed]);
    for (;;) {
      stopped.throwIfAborted();
      const leadership = await this.#campaignAgain(value, signal);
      if (leadership === undefined) {
        await sleep(this.#keeper.clock, retryMs, stopped);
        continue;
      }
      const done = await this.#lead(leadership, work, stopped);
      if (done !== undefined) return await done.outcome;
    }
  }

  /** Nothing if the backend can't be reached just now, which is no reason to give up. */
  async #campaignAgain(value: string, signal: Signal | undefined): Promise<Leadership | undefined> {
    try {
      return (await this.#campaign(value, { signal })).leadership;
    } catch (error) {
      if (error instanceof BackendError && error.backendCode === 'unavailable') return undefined;
      throw error;
    }
  }

  async *#observe(signal: Signal): AsyncGenerator<Leader | null, never> {
    let last: Leader | null | undefined;
    for await (const line of this.#keeper.read(this.#spot, signal)) {
      const leader = leaderOf(line);
      const isSame = last?.fencingToken === leader?.fencingToken && last?.value === leader?.value;
      const isNews = last === undefined || !isSame;
      last = leader;
      if (isNews) yield leader;
    }
    throw new Error('a line is read until an error ends it');
  }

  async #campaign(value: string, options: CampaignOptions): Promise<Elected> {
    const { eligible, ttlMs } = this.#options;
    const terms: AcquireOptions = { data: value, signal: options.signal, ...(ttlMs === undefined ? {} : { ttlMs }) };
    if (eligible === undefined) return await this.#enter(terms, options.wait ?? 'forever');
    const { clock, closed } = this.#keeper;
    const { waitMs } = this.#keeper.terms({ ...terms, wait: options.wait ?? 'forever' });
    const startedAtMs = clock.now().monotonicMs;
    const stopped = options.signal === undefined ? closed : AbortSignal.any([options.signal, closed]);
    for (;;) {
      stopped.throwIfAborted();
      const leftMs = waitMs - (clock.now().monotonicMs - startedAtMs);
      if (!(await untilEligible({ clock, eligible, signal: stopped, limitMs: leftMs }))) {
        stopped.throwIfAborted();
        throw new AcquireTimeoutError(this.name, waitMs);
      }
      const watched = whileEligible({ clock, eligible, signal: stopped });
      try {
        const signal = AbortSignal.any([stopped, watched.signal]);
        const left = Math.max(0, waitMs - (clock.now().monotonicMs - startedAtMs));
        return await this.#enter({ ...terms, signal }, left === Infinity ? 'forever' : left);
      } catch (error) {
        if (!watched.signal.aborted || error !== watched.signal.reason) throw error;
      } finally {
        watched.end();
      }
    }
  }

  async #enter(options: AcquireOptions, wait: WaitMode): Promise<Elected> {
    const hold = await this.#keeper.acquire(this.#spot, { ...options, wait }, { defaultWait: 'forever' });
    return { hold, leadership: new ElectedLeadership(this.#keeper, hold, options.data ?? '') };
  }

  /** What came of the work, in a promise, or nothing if it was not the leader to the end. */
  async #lead<T>(
    leadership: Leadership,
    work: (leadership: Leadership, signal: Signal) => Promise<T> | T,
    stopped: Signal,
  ): Promise<{ readonly outcome: Promise<T> } | undefined> {
    const { eligible = always } = this.#options;
    const watched = whileEligible({ clock: this.#keeper.clock, eligible, signal: stopped });
    const signal = AbortSignal.any([leadership.signal, watched.signal, stopped]);
    const outcome = this.#keeper.track(async () => await work(leadership, signal));
    await outcome.catch(() => {});
    watched.end();
    const isStillLeader = leadership.isHeld() && !watched.signal.aborted;
    await leadership[Symbol.asyncDispose]();
    return isStillLeader ? { outcome } : undefined;
  }
}

interface Elected {
  readonly hold: LeaseHold;
  readonly leadership: Leadership;
}

function always(): boolean {
  return true;
}

function leaderOf(line: readonly Entry[]): Leader | null {
  const [first] = holders(line);
  return first === undefined ? null : { holder: first.holder, value: first.data, fencingToken: first.ticket };
}
