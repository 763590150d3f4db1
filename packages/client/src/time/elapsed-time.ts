import type { Clock } from './clock.ts';

/** How far the wall may run ahead unnoticed: reading two clocks one after the other is no more exact than that. */
const unnoticedJumpMs = 20;

/**
 * How much time has passed, as leases count it: by the monotonic clock, plus what the clock on the wall has jumped
 * ahead of it, since a monotonic clock may stand still while the machine is suspended. A wall that is set back counts
 * for nothing. It never goes back, and at worst runs ahead, so a lease may be given up early but not late.
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

  /** Milliseconds since some moment of this process. */
  readMs(): number {
    const { monotonicMs, wallMs } = this.#clock.now();
    const aheadMs = wallMs - monotonicMs;
    const jumpMs = aheadMs - this.#wallAheadMs;
    if (jumpMs > unnoticedJumpMs) this.#jumpedMs += jumpMs;
    // Steps too small to notice are kept, so that many of them are noticed in the end.
    if (jumpMs > unnoticedJumpMs || jumpMs < 0) this.#wallAheadMs = aheadMs;
    return monotonicMs + this.#jumpedMs;
  }
}
