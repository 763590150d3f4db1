import type { Clock } from '../clock.ts';

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly wake: () => void;
}

/**
 * Time for tests: it stands still until somebody moves it. Timers run in the order of their times, and between two of
 * them all promises settle. `stall` is what Node does after its event loop was blocked: timers that came due
 * meanwhile run late, and before whatever has waited in the sockets.
 */
export class VirtualClock implements Clock {
  /** What the wall clock is ahead of the monotonic one: a suspended machine shows as a jump of it. */
  wallOffsetMs = 0;
  #nowMs = 0;
  #order = 0;
  #timers: Timer[] = [];
  #polls: (() => void)[] = [];

  /** Timers that are set. */
  get timers(): number {
    return this.#timers.length;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs + this.wallOffsetMs;
  }

  after(delayMs: number, wake: () => void): () => void {
    const timer: Timer = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, wake };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** No socket is read here, so that the end of a turn is the end of a poll phase. */
  soon(next: () => void): void {
    this.#polls.push(next);
  }

  afterPoll(next: () => void): void {
    this.#polls.push(next);
  }

  /** Lets `ms` pass, running what comes due on the way at its own moment. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await this.settle();
    for (;;) {
      const next = this.#first();
      if (next === undefined || next.atMs > endMs) break;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      this.#run(next);
      await this.settle();
    }
    this.#nowMs = endMs;
    await this.settle();
  }

  /**
   * Blocks the event loop for `ms`: due timers fire late, then `arrived` (what waited in the sockets) is read, then
   * the rest.
   */
  async stall(ms: number, arrived: () => void = () => {}): Promise<void> {
    this.#nowMs += ms;
    const due = this.#timers.filter((timer) => timer.atMs <= this.#nowMs);
    due.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
    for (const timer of due) {
      this.#run(timer);
      // As in Node, what a timer resolves goes on before the next one, and before any socket is read.
      await this.#drainPromises();
    }
    arrived();
    await this.settle();
  }

  /** What comes of `work`, while time passes for it, a millisecond at a time. */
  async run<T>(work: Promise<T>, maxMs: number): Promise<T> {
    let isDone = false;
    const noted = work.catch(() => undefined).finally(() => (isDone = true));
    const untilMs = this.#nowMs + maxMs;
    await this.settle();
    while (!isDone) {
      if (this.#nowMs >= untilMs) throw new Error(`nothing came of it within ${maxMs} ms of virtual time`);
      await this.advance(1);
    }
    await noted;
    return work;
  }

  /** Runs everything that can run without time passing. */
  async settle(): Promise<void> {
    for (;;) {
      await this.#drainPromises();
      const polls = this.#polls.splice(0);
      if (polls.length === 0) return;
      for (const next of polls) next();
    }
  }

  async #drainPromises(): Promise<void> {
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  }

  #first(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (first === undefined || timer.atMs < first.atMs || (timer.atMs === first.atMs && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  }

  #run(timer: Timer): void {
    this.#timers = this.#timers.filter((each) => each !== timer);
    timer.wake();
  }
}
