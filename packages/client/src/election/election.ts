import type { Entry } from '../backend/lease-backend.ts';
import { holders } from '../backend/queue-position.ts';
import { AcquireTimeoutError } from '../errors/acquire-timeout-error.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { AcquireOptions, WaitMode } from '../leases/acquire-options.ts';
import { untilEligible, whileEligible } from '../leases/eligible.ts';
import { cancellableIterator } from '../leases/cancellable-iterator.ts';
import type { LeaseHold } from '../leases/lease-hold.ts';
import type { LeaseRegistry } from '../leases/lease-registry.ts';
import type { WatchOptions } from '../leases/lease-watch.ts';
import type { QueueTarget } from '../leases/queue-target.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { sleep } from '../time/sleep.ts';
import { ElectedLeadership } from './leadership.ts';
import type { Leadership } from './leadership.ts';

/** The pause before the next campaign when the backend could not be reached. */
const retryMs = 1_000;

export interface ElectionOptions {
  /** How long a leadership lasts after its last renewal, in milliseconds; by default as long as a lease. */
  readonly ttlMs?: number;
  /**
   * While it returns false, this object does not campaign, and a leadership won through it ends: `run` resigns when the
   * work has ended, a leadership of `campaign` is lost. It is polled about every second.
   */
  readonly eligible?: () => boolean;
}

export interface CampaignOptions {
  readonly signal?: Signal | undefined;
  /** By default forever. */
  readonly wait?: WaitMode;
}

export interface RunOptions {
  /** The value that all clients can read; by default the holder. */
  readonly value?: string;
  /** Ends the wait, and aborts the signal of the work. */
  readonly signal?: Signal | undefined;
}

/** The leader, as it was read. */
export interface Leader {
  readonly holder: string;
  readonly value: string;
  readonly fencingToken: bigint;
}

/** One leader at a time among the candidates of one name, in first-come order. */
export interface Election {
  readonly name: string;
  /** Waits until this candidate is elected. Errors are those of `acquire` of the manager. */
  campaign(value: string, options?: CampaignOptions): Promise<Leadership>;
  /** Null while there is none. It may have changed by the time the answer arrives. */
  leader(): Promise<Leader | null>;
  /**
   * The leader now, and then each new leader or value, and null while there is none. A slow consumer gets only the
   * latest. An outage does not end it. It ends only by an error, as `watch` of the manager does.
   */
  observe(options?: WatchOptions): AsyncIterable<Leader | null>;
  /**
   * Campaigns, and runs the work while it leads. It campaigns again after a loss, or once it is eligible again. When
   * the work ends while it leads, it resigns and returns the result, or throws the error of the work. The signal of the
   * work aborts on a loss, when this stops being eligible, and when `options.signal` aborts. After that the entry stays
   * until the work ends or the leadership expires. The result of work that ends after a loss is ignored.
   */
  run<T>(work: (leadership: Leadership, signal: Signal) => Promise<T> | T, options?: RunOptions): Promise<T>;
}

/** Throws a UsageError for an invalid name. */
export function createElection(registry: LeaseRegistry, name: string, options: ElectionOptions = {}): Election {
  const target: QueueTarget = { queue: `election/${name}`, name, mode: 'exclusive', permits: 1 };
  registry.check(target);
  return new QueueElection(registry, target, options);
}

class QueueElection implements Election {
  readonly name: string;
  readonly #registry: LeaseRegistry;
  readonly #target: QueueTarget;
  readonly #options: ElectionOptions;

  constructor(registry: LeaseRegistry, target: QueueTarget, options: ElectionOptions) {
    this.name = target.name;
    this.#registry = registry;
    this.#target = target;
    this.#options = options;
  }

  async campaign(value: string, options: CampaignOptions = {}): Promise<Leadership> {
    const { hold, leadership } = await this.#registry.processRef.during(() => this.#campaign(value, options));
    const { eligible } = this.#options;
    if (eligible !== undefined) {
      // It is not known when the caller's work ends, so the leadership is lost and its entry stays until it expires.
      const { clock, closed } = this.#registry;
      const watched = whileEligible({ clock, eligible, signal: closed });
      hold.onEnded(() => watched.end());
      onAbort(watched.signal, () => hold.lose('revoked', { cause: watched.signal.reason }));
    }
    return leadership;
  }

  async leader(): Promise<Leader | null> {
    return leaderOf(await this.#registry.list(this.#target));
  }

  observe(options: WatchOptions = {}): AsyncIterable<Leader | null> {
    const { processRef } = this.#registry;
    return cancellableIterator({ signal: options.signal, processRef }, (signal) => this.#observe(signal));
  }

  async run<T>(work: (leadership: Leadership, signal: Signal) => Promise<T> | T, options: RunOptions = {}): Promise<T> {
    try {
      return await this.#registry.processRef.during(() => this.#run(work, options));
    } finally {
      await this.#registry.settled();
    }
  }

  async #run<T>(work: (leadership: Leadership, signal: Signal) => Promise<T> | T, options: RunOptions): Promise<T> {
    const { value = this.#registry.holder, signal } = options;
    const stopped = signal === undefined ? this.#registry.closed : AbortSignal.any([signal, this.#registry.closed]);
    for (;;) {
      stopped.throwIfAborted();
      const leadership = await this.#campaignAgain(value, signal);
      if (leadership === undefined) {
        await sleep(this.#registry.clock, retryMs, stopped);
        continue;
      }
      const done = await this.#lead(leadership, work, stopped);
      if (done !== undefined) return await done.outcome;
    }
  }

  /** Undefined if the backend can't be reached at the moment, so that the caller tries again. */
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
    for await (const queue of this.#registry.readQueue(this.#target, signal)) {
      const leader = leaderOf(queue);
      const isSame = last?.fencingToken === leader?.fencingToken && last?.value === leader?.value;
      const hasChanged = last === undefined || !isSame;
      last = leader;
      if (hasChanged) yield leader;
    }
    throw new Error('a queue is read until an error ends it');
  }

  async #campaign(value: string, options: CampaignOptions): Promise<Elected> {
    const { eligible, ttlMs } = this.#options;
    const terms: AcquireOptions = { data: value, signal: options.signal, ...(ttlMs === undefined ? {} : { ttlMs }) };
    if (eligible === undefined) return await this.#enter(terms, options.wait ?? 'forever');
    const { clock, closed } = this.#registry;
    const { waitMs } = this.#registry.terms({ ...terms, wait: options.wait ?? 'forever' });
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
    const hold = await this.#registry.acquire(this.#target, { ...options, wait }, { defaultWait: 'forever' });
    return { hold, leadership: new ElectedLeadership(this.#registry, hold, options.data ?? '') };
  }

  /** The outcome of the work, in a promise, or undefined if it did not lead until the end of the work. */
  async #lead<T>(
    leadership: Leadership,
    work: (leadership: Leadership, signal: Signal) => Promise<T> | T,
    stopped: Signal,
  ): Promise<{ readonly outcome: Promise<T> } | undefined> {
    const { eligible = always } = this.#options;
    const watched = whileEligible({ clock: this.#registry.clock, eligible, signal: stopped });
    const signal = AbortSignal.any([leadership.signal, watched.signal, stopped]);
    const outcome = this.#registry.track(async () => await work(leadership, signal));
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

function leaderOf(queue: readonly Entry[]): Leader | null {
  const [first] = holders(queue);
  return first === undefined ? null : { holder: first.holder, value: first.data, fencingToken: first.sequence };
}
