import type { Timer } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import type { AcquireOptions } from './acquire-options.ts';
import { isEligible } from './eligible.ts';
import type { Hold, ReleaseOptions } from './hold.ts';
import { LeaseEvents } from './lease-events.ts';
import type { LeaseHandle } from './lease-handle.ts';
import type { LeaseHold } from './lease-hold.ts';
import type { LeaseRegistry } from './lease-registry.ts';
import type { LeaseListener } from './lease-listener.ts';
import type { QueueTarget } from './queue-target.ts';

/** The acquisition in flight. Its promises never reject. */
interface PendingAcquisition {
  /** Resolves when another entry turned out to hold the lease. */
  readonly waiting: Promise<void>;
  readonly ended: Promise<void>;
}

interface WaitLimits {
  readonly leftMs: number;
  readonly signal: Signal | undefined;
}

/** Shared by all handles of one name of a manager: at most one hold, and at most one acquisition in flight. */
export class SharedLease implements LeaseHandle {
  readonly name: string;
  readonly #registry: LeaseRegistry;
  readonly #target: QueueTarget;
  readonly #shouldHold: () => boolean;
  readonly #events: LeaseEvents;
  #hold: LeaseHold | undefined;
  #pending: PendingAcquisition | undefined;

  constructor(registry: LeaseRegistry, target: QueueTarget, shouldHold: () => boolean) {
    this.name = target.name;
    this.#registry = registry;
    this.#target = target;
    this.#shouldHold = shouldHold;
    this.#events = new LeaseEvents(registry.backend.kind, registry.events);
  }

  get hold(): Hold | undefined {
    return this.isHeld() ? this.#hold : undefined;
  }

  shouldHold(): boolean {
    return isEligible(this.#shouldHold);
  }

  isHeld(): boolean {
    return this.#hold?.isHeld() ?? false;
  }

  async acquire(options: AcquireOptions = {}): Promise<Hold | null> {
    const { clock } = this.#registry;
    const { waitMs, signal } = this.#registry.terms(options, 'none');
    const startedAtMs = clock.now().monotonicMs;
    const leftMs = (): number => Math.max(0, waitMs - (clock.now().monotonicMs - startedAtMs));
    for (;;) {
      // Without a wait time, its end is awaited like the answer of the backend.
      const limits = { leftMs: waitMs === 0 ? Infinity : leftMs(), signal };
      if ((await this.#releasedBefore(limits)) === 'timed-out') return this.hold ?? null;
      await this.#registry.whileOpen();
      signal?.throwIfAborted();
      const held = this.hold;
      if (held !== undefined) return held;
      if (!this.shouldHold()) return null;
      if (this.#pending === undefined) return await this.#acquire(withWait(options, leftMs()));
      if ((await this.#join(this.#pending, { leftMs: leftMs(), signal })) === 'timed-out') return this.hold ?? null;
    }
  }

  async release(options?: ReleaseOptions): Promise<boolean> {
    if (this.isHeld()) return await this.#hold!.release(options);
    // The work has ended, so an entry that a loss has left there can go.
    if (this.#hold?.loss !== undefined) await this.#hold.release(options);
    return false;
  }

  addListener(listener: LeaseListener): () => void {
    const remove = this.#events.add(listener);
    if (this.isHeld()) this.#events.repeatAcquired(this.#hold!, listener);
    return remove;
  }

  /** A hold that is just being released would block the next one. */
  async #releasedBefore(limits: WaitLimits): Promise<'ended' | 'timed-out'> {
    const ended = this.#hold?.releasing?.then(ignore, ignore);
    if (ended === undefined) return 'ended';
    limits.signal?.throwIfAborted();
    return await this.#join({ waiting: Promise.resolve(), ended }, limits);
  }

  async #acquire(options: AcquireOptions): Promise<Hold | null> {
    let onWaiting: () => void = () => {};
    let onEnd: () => void = () => {};
    this.#pending = {
      waiting: new Promise((resolve) => (onWaiting = resolve)),
      ended: new Promise((resolve) => (onEnd = resolve)),
    };
    try {
      const onHold = (hold: LeaseHold): void => void (this.#hold = hold);
      const settings = { defaultWait: 'none', onWaiting, onHold, events: this.#events } as const;
      const hold = await this.#registry.tryAcquire(this.#target, options, settings);
      if (hold === null) onWaiting();
      if (hold === null || this.shouldHold()) return hold;
      // The lease was assigned to another process while this one waited.
      await hold[Symbol.asyncDispose]();
      return null;
    } finally {
      this.#pending = undefined;
      onEnd();
    }
  }

  /** Resolves when that acquisition has ended, or when the wait time is over. Rejects if the signal aborts. */
  #join(pending: PendingAcquisition, { leftMs, signal }: WaitLimits): Promise<'ended' | 'timed-out'> {
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const end = (settle: () => void): void => {
        timer?.cancel();
        offAbort?.();
        settle();
      };
      const refuse = (): void => end(() => reject(signal?.reason));
      const offAbort = signal === undefined ? undefined : onAbort(signal, refuse);
      void pending.ended.then(() => end(() => resolve('ended')));
      const timeOut = (): void => end(() => resolve('timed-out'));
      if (leftMs === 0) void pending.waiting.then(timeOut);
      else if (leftMs < Infinity) timer = this.#registry.clock.setTimer(leftMs, timeOut);
    });
  }
}

function ignore(): void {}

function withWait(options: AcquireOptions, waitMs: number): AcquireOptions {
  return { ...options, wait: waitMs === Infinity ? 'forever' : waitMs };
}
