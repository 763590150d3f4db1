import type { Clock } from '../time/clock.ts';

/**
 * How long a leader may act for leases by itself: `rightMs` from the moment at which it began the last append of its
 * own that came back, and was applied, with its epoch still standing. It ends when either clock has moved by that
 * much: a suspended machine, whose monotonic clock may have stood still, has no right when it wakes (design, section
 * 5). A pause that neither clock counts goes unseen here; then the log refuses what this leader appends, and only its
 * answers from memory can be wrong (docs/decisions/025). A right without an end is that of a leader whose log nobody
 * else appends to: it holds the folder, and the hold ends with the process.
 */
export class Right {
  readonly #clock: Clock;
  readonly #rightMs: number;
  #fromMonotonicMs: number;
  #fromWallMs: number;

  /** An append has come back that began at these moments. */
  constructor(clock: Clock, rightMs: number, began: ClockReading) {
    this.#clock = clock;
    this.#rightMs = rightMs;
    this.#fromMonotonicMs = began.monotonicMs;
    this.#fromWallMs = began.wallMs;
  }

  extend(began: ClockReading): void {
    this.#fromMonotonicMs = Math.max(this.#fromMonotonicMs, began.monotonicMs);
    this.#fromWallMs = began.wallMs;
  }

  holds(): boolean {
    if (this.#rightMs === Infinity) return true;
    const passedMs = this.#clock.monotonicMs() - this.#fromMonotonicMs;
    const wallPassedMs = Math.abs(this.#clock.wallMs() - this.#fromWallMs);
    return passedMs < this.#rightMs && wallPassedMs < this.#rightMs;
  }
}

/** Both clocks, read together. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
}
