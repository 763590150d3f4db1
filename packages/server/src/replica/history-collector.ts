import type { StateMachine } from '@tenure/core';
import type { Clock } from '../time/clock.ts';

/** One slice visits this many keys, which takes about a millisecond. */
const sliceSteps = 2_000;

/**
 * While a snapshot or a long range still reads compacted history, the collector checks this often whether it is done.
 */
const pauseLookMs = 100;

/**
 * Frees the memory of compacted history, in slices between which the event loop runs. No client can observe the
 * collection, so every server collects at its own pace.
 */
export class HistoryCollector {
  readonly #state: StateMachine;
  readonly #clock: Clock;
  #running = false;
  #stopped = false;
  #cancelPause: () => void = () => {};

  constructor(state: StateMachine, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** Starts the collection unless it runs. To be called after a compaction and after a start. */
  wake(): void {
    if (this.#running || this.#stopped) return;
    this.#running = true;
    this.#clock.soon(() => this.#slice());
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelPause();
  }

  #slice(): void {
    if (this.#stopped) return;
    const more = this.#state.collectGarbage(sliceSteps);
    if (more) this.#clock.soon(() => this.#slice());
    else if (this.#state.isGarbageCollectionPaused)
      this.#cancelPause = this.#clock.after(pauseLookMs, () => this.#slice());
    else this.#running = false;
  }
}
