import type { StateMachine } from '@tenure/core';

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
  #running = false;
  #stopped = false;
  #pause: NodeJS.Timeout | undefined;

  constructor(state: StateMachine) {
    this.#state = state;
  }

  /** Begins, if it is not under way: to be called when something was compacted, and after a start. */
  wake(): void {
    if (this.#running || this.#stopped) return;
    this.#running = true;
    setImmediate(() => this.#slice());
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#pause);
  }

  #slice(): void {
    if (this.#stopped) return;
    const more = this.#state.scrub(sliceSteps);
    if (more) setImmediate(() => this.#slice());
    else if (this.#state.isScrubPaused) this.#pause = setTimeout(() => this.#slice(), pauseLookMs);
    else this.#running = false;
  }
}
