/** A moment by both clocks. Only differences between moments of one process are meaningful. */
export interface Moment {
  /** Never goes back. On some systems it stands still while the machine is suspended. */
  readonly monotonicMs: number;
  /** May be set by hand. It goes on while the machine is suspended, so it shows a suspend. */
  readonly wallMs: number;
}

/** The library's only source of time. Tests pass their own (`FakeClock` of `tenure/testing`). */
export interface Clock {
  now(): Moment;
  /** Calls back once, not before `delayMs` have passed; possibly much later. The timer keeps no process alive. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}
