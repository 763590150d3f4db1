import type { Clock, Moment, Timer } from '../time/clock.ts';

interface WaitingTimer {
  readonly dueMs: number;
  readonly callback: () => void;
}

/** Taken before a test can replace the global one. */
const afterPromises = setImmediate;

/**
 * Time that passes only when a test says so. Timers run in the order in which they are due, those of one moment in the
 * order in which they were set.
 */
export class FakeClock implements Clock {
  readonly #timers = new Set<WaitingTimer>();
  #monotonicMs = 0;
  #wallMs: number;

  /** `wallMs` is what a clock on the wall shows at the start, in milliseconds since 1970. */
  constructor(options: { readonly wallMs?: number } = {}) {
    this.#wallMs = options.wallMs ?? Date.UTC(2030, 0, 1);
  }

  now(): Moment {
    return { monotonicMs: this.#monotonicMs, wallMs: this.#wallMs };
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const timer = { dueMs: this.#monotonicMs + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** How many timers are set: none are left when everything was closed. */
  get timerCount(): number {
    return this.#timers.size;
  }

  /**
   * Lets `ms` pass: stops at each timer that becomes due on the way, runs it, and goes on when all promises have
   * settled that could, so that timers set by what it woke are run as well. Await it before looking at anything.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0)) throw new RangeError(`time can't advance by ${ms} ms`);
    const endMs = this.#monotonicMs + ms;
    await settle();
    for (let next = this.#due(endMs); next !== undefined; next = this.#due(endMs)) {
      this.#pass(Math.max(0, next.dueMs - this.#monotonicMs));
      this.#timers.delete(next);
      next.callback();
      await settle();
    }
    // A timer's callback may itself have moved the time on.
    this.#pass(Math.max(0, endMs - this.#monotonicMs));
    await settle();
  }

  /** As when the process stands still for so long: time passes at once, and timers that were due meanwhile run late. */
  async stall(ms: number): Promise<void> {
    this.#pass(ms);
    await this.advance(0);
  }

  /** The clock on the wall is set on, or back by a negative number. No timer goes by it. */
  jumpWall(ms: number): void {
    this.#wallMs += ms;
  }

  #pass(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  #due(untilMs: number): WaitingTimer | undefined {
    let first: WaitingTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && (first === undefined || timer.dueMs < first.dueMs)) first = timer;
    }
    return first;
  }
}

/** Until every promise has settled that waits for nothing outside of this process. */
async function settle(): Promise<void> {
  // The second turn is for what the first one's own immediates began.
  for (let turn = 0; turn < 2; turn++) await new Promise<void>((resolve) => afterPromises(resolve));
}
