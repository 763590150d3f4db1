import type { Clock } from '../time/clock.ts';

/** The interval of ticks while the clock runs. The part of a stall before the delayed tick goes undetected. */
const tickMs = 50;
/**
 * A tick this late means that the event loop was blocked or the process suspended. Shorter delays are normal for timers
 * on a busy machine. They occur again and again, so skipping them would delay every expiry by their sum. No renewal
 * that has arrived is lost by it, since the sockets are read before each decision.
 */
const stallThresholdMs = 100;

/**
 * The clock by which leases run: the monotonic clock minus all time during which this process was stalled.
 *
 * A stall is not a death (rule 8): while the event loop was blocked or the process suspended, no renewal could be read,
 * so that time must not count against any lease. Deadlines, renewals and cluster time are all measured on this one
 * clock, so one subtraction here moves every deadline by a stall. The clock may lag true time. It never runs ahead and
 * never goes back: if part of a stall was already read before it was long enough to count, the clock stops for as long.
 *
 * Stalls are detected by missing ticks, and by the first read of the clock after them. So no reader ever sees a time
 * with a stall in it, even where a resolved append runs before any timer.
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

  /** Starts to detect stalls; before, this is the monotonic clock. Idempotent. */
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

  /** The number of stalls detected so far. */
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
