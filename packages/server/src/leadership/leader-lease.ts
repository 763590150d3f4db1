import type { Clock, ClockReading } from '../time/clock.ts';

/**
 * The time during which a leader may act for leases without asking the log: `leaderLeaseMs` from the beginning of its
 * last append that returned and was applied in the same epoch. The leader lease ends when either clock has advanced by
 * that much, because the monotonic clock may stop while a machine is suspended. A pause that neither clock counts is
 * not detected here. The log then rejects the appends of this leader, and only its answers from memory can be wrong
 * (docs/decisions/025). On a log that no other server appends to, the leader lease has no end: the server holds the
 * data folder until its process ends.
 */
export class LeaderLease {
  readonly #clock: Clock;
  readonly #leaderLeaseMs: number;
  #fromMonotonicMs: number;
  #fromWallMs: number;

  /** An append that began at this reading has returned. */
  constructor(clock: Clock, leaderLeaseMs: number, began: ClockReading) {
    this.#clock = clock;
    this.#leaderLeaseMs = leaderLeaseMs;
    this.#fromMonotonicMs = began.monotonicMs;
    this.#fromWallMs = began.wallMs;
  }

  extend(began: ClockReading): void {
    this.#fromMonotonicMs = Math.max(this.#fromMonotonicMs, began.monotonicMs);
    this.#fromWallMs = began.wallMs;
  }

  holds(): boolean {
    if (this.#leaderLeaseMs === Infinity) return true;
    const passedMs = this.#clock.monotonicMs() - this.#fromMonotonicMs;
    const wallPassedMs = Math.abs(this.#clock.wallMs() - this.#fromWallMs);
    return passedMs < this.#leaderLeaseMs && wallPassedMs < this.#leaderLeaseMs;
  }
}
