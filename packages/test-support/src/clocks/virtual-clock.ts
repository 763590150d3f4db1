import { NodeClock } from './node-clock.ts';
import { Schedule } from './schedule.ts';

/**
 * Time for unit tests: it passes only when the test advances it. Timers run in the order of their times, and between
 * two of them all promises settle. It is the clock of a simulated process with exact clocks.
 */
export class VirtualClock extends NodeClock {
  readonly #schedule: Schedule;
  #timers = 0;

  constructor() {
    const schedule = new Schedule();
    super({ schedule, monotonicRate: 1, wallRate: 1, wallIgnored: false });
    this.#schedule = schedule;
  }

  /** Pending timers. */
  get timers(): number {
    return this.#timers;
  }

  override after(delayMs: number, wake: () => void): () => void {
    let isSet = true;
    const unset = (): void => {
      if (isSet) this.#timers -= 1;
      isSet = false;
    };
    this.#timers += 1;
    const cancel = super.after(delayMs, () => {
      unset();
      wake();
    });
    return () => {
      unset();
      cancel();
    };
  }

  /** Lets `ms` pass; due timers run at their own time. */
  async advance(ms: number): Promise<void> {
    await this.#schedule.settle();
    await this.#schedule.runUntil(this.#schedule.nowMs + ms);
  }

  /**
   * Blocks the event loop for `ms`: due timers fire late, then `arrived` (data in the sockets) is read, then the rest.
   */
  async stall(ms: number, arrived: () => void = () => {}): Promise<void> {
    this.#schedule.hold(ms);
    this.deliver(0, arrived);
    await this.settle();
  }

  /** The result of `work`, while time passes for it, a millisecond at a time. */
  async run<T>(work: Promise<T>, maxMs: number): Promise<T> {
    let isDone = false;
    const noted = work.catch(() => undefined).finally(() => (isDone = true));
    const untilMs = this.monotonicMs() + maxMs;
    await this.settle();
    while (!isDone) {
      if (this.monotonicMs() >= untilMs) throw new Error(`nothing came of it within ${maxMs} ms of virtual time`);
      await this.advance(1);
    }
    await noted;
    return work;
  }

  /** Runs everything that can run without time passing. */
  settle(): Promise<void> {
    return this.advance(0);
  }
}
