import type { Clock } from './clock.ts';

/**
 * How long a leader may act for leases by itself: `rightMs` from the moment at which it began the last append of its
 * own that came back, and was applied, with its epoch still standing. It ends when either clock has moved by that
 * much: a suspended machine, whose monotonic clock may have stood still, has no right when it wakes (design, section
 * 5). A pause that neither clock counts goes unseen here; then the log refuses what this leader appends, and only its
 * answers from memory can be wrong (docs/decisions/025).
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
