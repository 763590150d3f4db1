import type { StateMachine } from '@tenure/core';
import type { Clock } from '../time/clock.ts';

/** A slice of scrubbing looks at this many keys, which takes about a millisecond. */
const sliceSteps = 2_000;

/** Where a snapshot or a long range needs what was compacted, it is looked this often whether it is done. */
const pauseLookMs = 100;

/**
 * Gives back the memory of what was compacted, in slices between which the event loop is free. Scrubbing changes
 * nothing that anybody can see, so every server does it at its own pace.
 */
export class Scrubber {
  readonly #state: StateMachine;
  readonly #clock: Clock;
  #running = false;
  #stopped = false;
  #cancelPause: () => void = () => {};

  constructor(state: StateMachine, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  /** Begins, if it is not under way: to be called when something was compacted, and after a start. */
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
    const more = this.#state.scrub(sliceSteps);
    if (more) this.#clock.soon(() => this.#slice());
    else if (this.#state.isScrubPaused) this.#cancelPause = this.#clock.after(pauseLookMs, () => this.#slice());
    else this.#running = false;
  }
}
