/** Both clocks, read together. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/**
 * The clocks, the timers and the turns of the event loop of this process. It is injected everywhere, so that tests and
 * the simulator can inject another. Helpers built on these calls are in separate files: `every`, `sleep`,
 * `yieldToEventLoop`.
 */
export interface Clock {
  /** Milliseconds of a monotonic clock; its zero has no meaning. */
  monotonicMs(): number;
  /**
   * Milliseconds of the wall clock. Its jumps reveal that the machine was suspended. Its value is used for one thing:
   * when a JSON Web Token ends, which other machines must agree on.
   */
  wallMs(): number;
  /**
   * Calls `wake` once after `delayMs` (at least; a blocked event loop makes it late). Returns a function that cancels
   * it.
   */
  after(delayMs: number, wake: () => void): () => void;
  /** Calls `next` at the end of the event loop's turn, when the data read from the sockets in it has been processed. */
  soon(next: () => void): void;
  /**
   * Calls `next` after all data in this process's sockets has been read and processed once: one whole poll phase of the
   * event loop is between the call and the callback.
   */
  afterPoll(next: () => void): void;
}
