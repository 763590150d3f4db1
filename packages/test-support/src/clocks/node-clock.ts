import type { Schedule } from './schedule.ts';

interface Timer {
  readonly dueMs: number;
  readonly wake: () => void;
  cancelled: boolean;
}

export interface NodeClockOptions {
  readonly schedule: Schedule;
  /** The rates of the two clocks, relative to true time. */
  readonly monotonicRate: number;
  readonly wallRate: number;
  /** The wall clock equals the monotonic one: it cannot reveal a suspension. */
  readonly wallIgnored: boolean;
  /** How long one turn of the event loop takes; 0 by default. */
  readonly turnMs?: () => number;
}

/**
 * The clocks and the event loop of one run of one simulated process. `pause` blocks the loop: callbacks that became due
 * meanwhile run at its end, timers first, then data in the sockets, then callbacks that waited for a poll phase.
 * `suspend` is a pause during which the monotonic clock stops. A dead process runs no more callbacks. It implements the
 * clock that the server's leadership uses.
 */
export class NodeClock {
  dead = false;
  readonly #options: NodeClockOptions;
  #paused = false;
  #suspendedAtMs: number | undefined;
  #pausedAtMs = 0;
  #resumedAtMs = 0;
  #pausedMs = 0;
  readonly #pauses: number[] = [];
  /** True time that the monotonic clock has missed. */
  #missedMs = 0;
  #wallStepsMs = 0;
  #dueTimers: Timer[] = [];
  #inbox: (() => void)[] = [];
  #polls: (() => void)[] = [];

  constructor(options: NodeClockOptions) {
    this.#options = options;
  }

  get stopped(): boolean {
    return this.#paused || this.dead;
  }

  /** True time in which this process was stopped, regardless of its clocks. */
  get stoppedMs(): number {
    return this.#pausedMs + (this.#paused ? this.#options.schedule.nowMs - this.#pausedAtMs : 0);
  }

  /** The lengths of the pauses that have ended, in true time. */
  get pauses(): readonly number[] {
    return this.#pauses;
  }

  /** True time since this process last continued after it was stopped. */
  get awakeMs(): number {
    return this.#options.schedule.nowMs - this.#resumedAtMs;
  }

  monotonicMs(): number {
    const { schedule, monotonicRate } = this.#options;
    return ((this.#suspendedAtMs ?? schedule.nowMs) - this.#missedMs) * monotonicRate;
  }

  wallMs(): number {
    const { schedule, wallRate, wallIgnored } = this.#options;
    return wallIgnored ? this.monotonicMs() : schedule.nowMs * wallRate + this.#wallStepsMs;
  }

  after(delayMs: number, wake: () => void): () => void {
    const timer: Timer = { dueMs: this.monotonicMs() + Math.max(0, delayMs), wake, cancelled: false };
    this.#setTimer(timer);
    return () => {
      timer.cancelled = true;
    };
  }

  soon(next: () => void): void {
    this.#nextTurn(0, next);
  }

  afterPoll(next: () => void): void {
    this.#nextTurn(this.#options.turnMs?.() ?? 0, next);
  }

  /** Data reaches this process's sockets after `delayMs` of true time, and is read when the process runs. */
  deliver(delayMs: number, receive: () => void): void {
    this.#options.schedule.in(delayMs, () => this.arrive(receive));
  }

  /** Data reaches this process's sockets now. */
  arrive(receive: () => void): void {
    if (this.#paused) this.#inbox.push(receive);
    else if (!this.dead) receive();
  }

  stepWall(byMs: number): void {
    this.#wallStepsMs += byMs;
  }

  pause(): void {
    this.#paused = true;
    this.#pausedAtMs = this.#options.schedule.nowMs;
  }

  suspend(): void {
    this.pause();
    this.#suspendedAtMs = this.#options.schedule.nowMs;
  }

  resume(): void {
    const { schedule } = this.#options;
    const lastedMs = schedule.nowMs - this.#pausedAtMs;
    this.#pauses.push(lastedMs);
    this.#pausedMs = this.stoppedMs;
    this.#resumedAtMs = schedule.nowMs;
    if (this.#suspendedAtMs !== undefined) this.#missedMs += schedule.nowMs - this.#suspendedAtMs;
    this.#suspendedAtMs = undefined;
    this.#paused = false;
    const timers = this.#dueTimers.splice(0).sort((one, other) => one.dueMs - other.dueMs);
    for (const timer of timers) this.#setTimer(timer);
    for (const receive of this.#inbox.splice(0)) this.deliver(0, receive);
    for (const next of this.#polls.splice(0)) this.#nextTurn(0, next);
  }

  #nextTurn(delayMs: number, next: () => void): void {
    this.#options.schedule.in(delayMs, () => {
      if (this.#paused) this.#polls.push(next);
      else if (!this.dead) next();
    });
  }

  #setTimer(timer: Timer): void {
    const leftMs = (timer.dueMs - this.monotonicMs()) / this.#options.monotonicRate;
    this.#options.schedule.in(Math.max(0, leftMs), () => this.#fire(timer));
  }

  #fire(timer: Timer): void {
    if (timer.cancelled || this.dead) return;
    if (this.#paused) this.#dueTimers.push(timer);
    // The monotonic clock may have stopped since the timer was set. A rounding remainder is not a delay.
    else if (timer.dueMs - this.monotonicMs() > 1e-6) this.#setTimer(timer);
    else timer.wake();
  }
}
