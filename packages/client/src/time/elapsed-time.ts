import type { Clock } from './clock.ts';

/** Smaller jumps of the wall clock are ignored, because the two clocks are read one after the other. */
const ignoredJumpMs = 20;

/**
 * Elapsed time for leases: the monotonic clock plus the forward jumps of the wall clock, because a monotonic clock may
 * stop while the machine is suspended. A wall clock that is set back is ignored. Elapsed time never goes back, and can
 * only be too large, so a lease may be given up early but not late.
 */
export class ElapsedTime {
  readonly #clock: Clock;
  #wallAheadMs: number;
  #jumpedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    const { monotonicMs, wallMs } = clock.now();
    this.#wallAheadMs = wallMs - monotonicMs;
  }

  /** Milliseconds since an arbitrary moment of this process. */
  readMs(): number {
    const { monotonicMs, wallMs } = this.#clock.now();
    const aheadMs = wallMs - monotonicMs;
    const jumpMs = aheadMs - this.#wallAheadMs;
    if (jumpMs > ignoredJumpMs) this.#jumpedMs += jumpMs;
    // Ignored jumps add up until their sum is counted.
    if (jumpMs > ignoredJumpMs || jumpMs < 0) this.#wallAheadMs = aheadMs;
    return monotonicMs + this.#jumpedMs;
  }
}
