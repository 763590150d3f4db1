import { NodeClock } from '@tenure/test-support';
import type { Clock, Moment, Timer } from '../../packages/client/src/time/clock.ts';

/** A timer is never early, as the library's clock promises; the simulated one may be by a rounding error. */
const roundingMs = 0.01;

type ProcessOptions = ConstructorParameters<typeof NodeClock>[0];

/** One run of a simulated process that uses the library. It is the clock that the library is handed. */
export class LibraryProcess implements Clock {
  readonly name: string;
  readonly node: NodeClock;
  /** Timers that were set, and have neither fired nor been cancelled. */
  timers = 0;
  /** Calls and watches of the library that are open. */
  openCalls = 0;
  openWatches = 0;
  /** The true time of the last suspension, in which the monotonic clock stood still. */
  suspendedAtMs = -Infinity;
  /** Called once, when the next renewal has been sent. */
  afterRenewalSent: (() => void) | undefined;
  readonly #options: ProcessOptions;
  #isSuspended = false;

  constructor(name: string, options: ProcessOptions) {
    this.name = name;
    this.#options = options;
    this.node = new NodeClock(options);
  }

  now(): Moment {
    return { monotonicMs: this.node.monotonicMs(), wallMs: this.node.wallMs() };
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    let isSet = true;
    const unset = (): boolean => {
      const wasSet = isSet;
      if (isSet) this.timers -= 1;
      isSet = false;
      return wasSet;
    };
    this.timers += 1;
    const cancel = this.node.after(delayMs + roundingMs, () => {
      if (unset()) callback();
    });
    return {
      cancel: () => {
        unset();
        cancel();
      },
    };
  }

  /** For the application: a pause of its own code. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.node.after(delayMs, resolve));
  }

  suspend(): void {
    this.#isSuspended = true;
    this.suspendedAtMs = this.#options.schedule.nowMs;
    this.node.suspend();
  }

  resume(): void {
    if (this.#isSuspended) this.suspendedAtMs = this.#options.schedule.nowMs;
    this.#isSuspended = false;
    this.node.resume();
  }
}
