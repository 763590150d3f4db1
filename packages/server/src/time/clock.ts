/**
 * The clocks, the timers and the turns of the event loop of this process. Whatever waits or measures is handed one, so
 * that tests and the simulator can hand in another. What is made of these few calls stands beside it: `every`, `sleep`,
 * `breathe`.
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
  /** Calls `next` at the end of the event loop's turn, when what was read from the sockets in it has been handled. */
  soon(next: () => void): void;
  /**
   * Calls `next` after everything that waits in this process's sockets has been read and handled once: one whole poll
   * phase of the event loop lies between the call and the callback.
   */
  afterPoll(next: () => void): void;
}
