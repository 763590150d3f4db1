import type { Clock } from '../clock.ts';

/** The clock of one of several processes that share a machine's time: one that was killed is woken no more. */
export class ProcessClock implements Clock {
  isDead = false;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  after(delayMs: number, wake: () => void): () => void {
    return this.#clock.after(delayMs, () => this.#run(wake));
  }

  soon(next: () => void): void {
    this.#clock.soon(() => this.#run(next));
  }

  afterPoll(next: () => void): void {
    this.#clock.afterPoll(() => this.#run(next));
  }

  #run(callback: () => void): void {
    if (!this.isDead) callback();
  }
}
