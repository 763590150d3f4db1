import { abortable } from '../time/abortable.ts';
import type { Timer } from '../time/clock.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import type { AcquireOptions } from './acquire-options.ts';
import { isEligible } from './eligible.ts';
import type { Hold, ReleaseOptions } from './hold.ts';
import { LeaseEvents } from './lease-events.ts';
import type { LeaseHandle } from './lease-handle.ts';
import type { LeaseHold } from './lease-hold.ts';
import type { LeaseKeeper } from './lease-keeper.ts';
import type { LeaseListener } from './lease-listener.ts';
import type { LineSpot } from './line-seeker.ts';

/** The one acquisition that is under way. Its promises never reject. */
interface Drive {
  /** Resolves when it turned out that somebody else has it. */
  readonly inLine: Promise<void>;
  readonly ended: Promise<void>;
}

/** What all handles of one name of a manager share: one hold at most, and one acquisition under way at most. */
export class SharedLease implements LeaseHandle {
  readonly name: string;
  readonly #keeper: LeaseKeeper;
  readonly #spot: LineSpot;
  readonly #shouldHold: () => boolean;
  readonly #events: LeaseEvents;
  #hold: LeaseHold | undefined;
  #drive: Drive | undefined;

  constructor(keeper: LeaseKeeper, spot: LineSpot, shouldHold: () => boolean) {
    this.name = spot.name;
    this.#keeper = keeper;
    this.#spot = spot;
    this.#shouldHold = shouldHold;
    this.#events = new LeaseEvents(keeper.backend.kind, keeper.events);
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
    const { clock } = this.#keeper;
    const { waitMs, signal } = this.#keeper.terms(options, 'none');
    const startedAtMs = clock.now().monotonicMs;
    for (;;) {
      // One that is just being released would stand in the way of the next.
      const released = this.#hold?.releasing?.then(ignore, ignore);
      if (released !== undefined) await (signal === undefined ? released : abortable(released, signal));
      await this.#keeper.whileOpen();
      signal?.throwIfAborted();
      const held = this.hold;
      if (held !== undefined) return held;
      if (!this.shouldHold()) return null;
      const leftMs = Math.max(0, waitMs - (clock.now().monotonicMs - startedAtMs));
      if (this.#drive === undefined) return await this.#acquire(withWait(options, leftMs));
      if ((await this.#join(this.#drive, { leftMs, signal })) === 'timed-out') return this.hold ?? null;
    }
  }

  async release(options?: ReleaseOptions): Promise<boolean> {
    if (this.isHeld()) return await this.#hold!.release(options);
    // The work has ended, so what a loss has left of the entry can go.
    if (this.#hold?.loss !== undefined) await this.#hold.release(options);
    return false;
  }

  addListener(listener: LeaseListener): () => void {
    const remove = this.#events.add(listener);
    if (this.isHeld()) this.#events.repeatAcquired(this.#hold!, listener);
    return remove;
  }

  async #acquire(options: AcquireOptions): Promise<Hold | null> {
    let onWaiting: () => void = () => {};
    let onEnd: () => void = () => {};
    this.#drive = {
      inLine: new Promise((resolve) => (onWaiting = resolve)),
      ended: new Promise((resolve) => (onEnd = resolve)),
    };
    try {
      const onHold = (hold: LeaseHold): void => void (this.#hold = hold);
      const seekOptions = { defaultWait: 'none', onWaiting, onHold, events: this.#events } as const;
      const hold = await this.#keeper.tryAcquire(this.#spot, options, seekOptions);
      if (hold === null) onWaiting();
      if (hold === null || this.shouldHold()) return hold;
      // It has become somebody else's while this process waited.
      await hold[Symbol.asyncDispose]();
      return null;
    } finally {
      this.#drive = undefined;
      onEnd();
    }
  }

  /** Until that acquisition has ended, or the caller does not want to wait any longer. Rejects if the signal aborts. */
  #join(drive: Drive, limits: { leftMs: number; signal: Signal | undefined }): Promise<'ended' | 'timed-out'> {
    const { leftMs, signal } = limits;
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const end = (settle: () => void): void => {
        timer?.cancel();
        offAbort?.();
        settle();
      };
      const refuse = (): void => end(() => reject(signal?.reason));
      const offAbort = signal === undefined ? undefined : onAbort(signal, refuse);
      void drive.ended.then(() => end(() => resolve('ended')));
      const timeOut = (): void => end(() => resolve('timed-out'));
      if (leftMs === 0) void drive.inLine.then(timeOut);
      else if (leftMs < Infinity) timer = this.#keeper.clock.setTimer(leftMs, timeOut);
    });
  }
}

function ignore(): void {}

function withWait(options: AcquireOptions, waitMs: number): AcquireOptions {
  return { ...options, wait: waitMs === Infinity ? 'forever' : waitMs };
}
