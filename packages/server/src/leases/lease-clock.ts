import type { Clock } from '../time/clock.ts';

/** A tick is due this often while the clock runs. The part of a stall before the tick that it delays goes unnoticed. */
const tickMs = 50;
/**
 * A tick that is this late means that the event loop was blocked or the process suspended. Less than this is the
 * ordinary unpunctuality of timers on a busy machine: it comes again and again, so that forgiving it would make every
 * expiry later by the sum. No renewal that has arrived is lost by it, since the sockets are read before each decision.
 */
const stallThresholdMs = 100;

/**
 * The clock by which leases run: the monotonic clock less all time during which this process was stalled.
 *
 * A stall is not a death (rule 8): while the event loop was blocked or the process suspended, no renewal could be
 * read, so that time counts against nobody. Because deadlines, renewals and cluster time are all measured on this one
 * clock, moving every deadline by a stall is one subtraction here. It may lag true time; it never leads it, and it
 * never goes back: where a stall has been read in part before it was long enough to be one, the clock stands still for
 * as long.
 *
 * Stalls are noticed by ticks that did not come, and by whoever asks for the time first, so that nobody ever sees a
 * time with a stall in it: what an append resolves, say, may run before any timer does.
 */
export class LeaseClock {
  readonly #clock: Clock;
  #stalledMs = 0;
  #lastMs = -Infinity;
  #tickDueMs = Infinity;
  #stalls = 0;
  #cancelTick: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From here on stalls are noticed; before, it is the monotonic clock. Idempotent. */
  start(): void {
    if (this.#tickDueMs === Infinity) this.#awaitTick();
  }

  stop(): void {
    this.#cancelTick();
    this.#tickDueMs = Infinity;
  }

  nowMs(): number {
    const monotonicMs = this.#clock.monotonicMs();
    const lateMs = monotonicMs - this.#tickDueMs;
    if (lateMs >= stallThresholdMs) {
      this.#stalledMs += lateMs;
      this.#stalls += 1;
      this.#tickDueMs = monotonicMs;
    }
    this.#lastMs = Math.max(this.#lastMs, monotonicMs - this.#stalledMs);
    return this.#lastMs;
  }

  /** How many stalls have been noticed by now. */
  stallCount(): number {
    this.nowMs();
    return this.#stalls;
  }

  #awaitTick(): void {
    this.#tickDueMs = this.#clock.monotonicMs() + tickMs;
    this.#cancelTick = this.#clock.after(tickMs, () => {
      this.nowMs();
      this.#awaitTick();
    });
  }
}
