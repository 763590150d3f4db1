/**
 * The clocks of this machine, as leadership sees them. Only `leadership/` measures time for leases, and only through
 * this object, so that tests and the simulator can hand in another one.
 */
export interface Clock {
  /** Milliseconds of a clock that never steps; its zero means nothing. */
  monotonicMs(): number;
  /**
   * Milliseconds of the wall clock. Only its jumps are looked at, never its value: it shows a machine that was
   * suspended.
   */
  wallMs(): number;
  /**
   * Calls `wake` once after `delayMs` (at least; a blocked event loop makes it late). Returns a function that cancels
   * it.
   */
  after(delayMs: number, wake: () => void): () => void;
  /**
   * Calls `next` after everything that waits in this process's sockets has been read and handled once: one whole poll
   * phase of the event loop lies between the call and the callback.
   */
  afterPoll(next: () => void): void;
}
