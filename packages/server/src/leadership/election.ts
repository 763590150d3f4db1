import type { Clock } from '../time/clock.ts';

export interface ElectionOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Infinity: this server claims only on command. */
  readonly electionTimeoutMs: number;
  /** `leaderLeaseMs` of the current claim; 0 before the first. */
  readonly state: { readonly leaderLeaseMs: number };
  /** Between 0 and 1. */
  readonly random: () => number;
}

/** A follower waits longer than the leader lease by this factor, since clocks run at different rates. */
const leaderLeaseMargin = 1.25;
/** A random part of the timeout, up to this share, is added so that servers do not claim at the same moment. */
const jitterPart = 0.5;

/**
 * Decides when this server claims: after it has applied nothing for max(its election timeout, 1.25 x the leader lease)
 * plus jitter. The first wait begins with the process.
 */
export class Election {
  readonly #options: ElectionOptions;
  /** When the current wait began: an entry was applied, or a claim was tried. */
  #waitsFromMs: number;
  #heardMs = -Infinity;
  #jitter: number;
  #wakeAtMs: number;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#waitsFromMs = options.clock.monotonicMs();
    this.#jitter = options.random();
    this.#wakeAtMs = this.#dueMs();
  }

  /** When `timePassed` must be called, by the monotonic clock. It may be earlier than the next claim. */
  get wakeAtMs(): number {
    return this.#wakeAtMs;
  }

  /** An entry was applied. Costs one read of the clock. */
  heard(): void {
    this.#heardMs = this.#options.clock.monotonicMs();
    this.#waitsFromMs = this.#heardMs;
  }

  /** Whether an entry was applied within the election timeout. */
  get hasLeader(): boolean {
    return this.#options.clock.monotonicMs() - this.#heardMs < this.#timeoutMs();
  }

  /** Whether to claim now. After a yes, the next claim is due a full timeout later. */
  timePassed(): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs < this.#wakeAtMs) return false;
    const isDue = nowMs >= this.#dueMs();
    if (isDue) {
      this.#waitsFromMs = nowMs;
      this.#jitter = this.#options.random();
    }
    this.#wakeAtMs = this.#dueMs();
    return isDue;
  }

  #timeoutMs(): number {
    const { electionTimeoutMs, state } = this.#options;
    return Math.max(electionTimeoutMs, leaderLeaseMargin * state.leaderLeaseMs);
  }

  #dueMs(): number {
    return this.#waitsFromMs + this.#timeoutMs() * (1 + jitterPart * this.#jitter);
  }
}
