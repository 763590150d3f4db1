/** A moment by both clocks. Only differences between moments of one process mean anything. */
export interface Moment {
  /** Never goes back. On some systems it stands still while the machine is suspended. */
  readonly monotonicMs: number;
  /** May be set by hand. It runs on while the machine is suspended, and so tells of it. */
  readonly wallMs: number;
}

/** All that the library knows of time. Tests bring their own (`FakeClock` of `tenure/testing`). */
export interface Clock {
  now(): Moment;
  /** Calls back once, not before `delayMs` have passed; possibly much later. The timer keeps no process alive. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}
