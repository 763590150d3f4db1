/** Clocks run this much too fast or too slow, at most. */
export const clockErrorMax = 0.05;
/** The longest delay of an expiry's proposal on the leader's clock: a sleep and two appends. */
export const expirySlackMs = 1_800;
/**
 * The most that a change of leader may add besides the time without a leader: a leader lease and a heartbeat interval.
 */
export const changeSlackMs = 1_000;
/** How long a leader may act from the beginning of its last append that returned. */
export const leaderLeaseMs = 800;
/**
 * A lease that is not renewed for this share of its TTL is checkpointed, within a sleep of the timer and two appends.
 */
export const checkpointAt = 2 / 3;

/** When a lease was last renewed, and how its time has passed since. */
export interface UnrenewedTime {
  readonly sinceMs: number;
  readonly stoodMs: number;
  /**
   * How long its deadline was in memory before the first change of leader that found it so: its TTL restarts there,
   * once.
   */
  carriedMs: number;
  changes: number;
}

/**
 * The longest that a lease may outlive its last renewal, in true time, whatever happens to the leaders: its TTL, plus
 * the time for which its deadline was in memory when the leader changed, plus all time in which no leader led, or the
 * leader was stopped or was closing. No lease expires then, and nothing else may delay an expiry.
 */
export class ExpiryBound {
  readonly #idleMs: () => number;
  /** The total so far. */
  #stoodMs = 0;
  /** The moment until which cluster time is known to have advanced, and the leader's total suspension by then. */
  #passedUntilMs = 0;
  #leaderStoppedMs = 0;

  /** `idleMs` is the total time for which the process of the leader could not act, in true time. */
  constructor(idleMs: () => number) {
    this.#idleMs = idleMs;
  }

  /** The leader of the epoch has an entry in the log whose append began at `beganMs`, which is its cluster time too. */
  appended(beganMs: number): void {
    const stoppedMs = this.#idleMs();
    const passedMs = Math.max(0, beganMs - this.#passedUntilMs);
    this.#stoodMs += Math.min(passedMs, Math.max(0, stoppedMs - this.#leaderStoppedMs));
    this.#passedUntilMs += passedMs;
    this.#leaderStoppedMs = stoppedMs;
  }

  /** An epoch begins. `isInMemory`: the deadline of the lease was only in memory until then. */
  changed(nowMs: number, leases: Iterable<{ time: UnrenewedTime; isInMemory: boolean }>): void {
    for (const { time, isInMemory } of leases) {
      time.changes += 1;
      if (isInMemory) time.carriedMs = Math.max(0, this.#ledMs(time));
    }
    this.#stoodMs += Math.max(0, nowMs - this.#passedUntilMs);
    this.#passedUntilMs = nowMs;
    this.#leaderStoppedMs = this.#idleMs();
  }

  renewed(atMs: number): UnrenewedTime {
    return { sinceMs: atMs, stoodMs: this.#stoodMs, carriedMs: 0, changes: 0 };
  }

  /** By how much the checkpoint of a lease is late whose deadline is only in memory; negative while it is not. */
  checkpointLateMs(ttlMs: number, time: UnrenewedTime): number {
    return this.#ledMs(time) - (ttlMs * checkpointAt) / (1 - clockErrorMax) - expirySlackMs;
  }

  /** By how much a lease has outlived its bound; negative while it has not. */
  lateMs(ttlMs: number, time: UnrenewedTime, nowMs: number): number {
    // A leader whose append is in flight for longer than its leader lease does not lead.
    const outMs = Math.max(0, nowMs - this.#passedUntilMs - leaderLeaseMs);
    const ranMs = nowMs - time.sinceMs - (this.#stoodMs + outMs - time.stoodMs);
    const mayMs = (ttlMs + time.carriedMs) / (1 - clockErrorMax) + expirySlackMs + changeSlackMs * time.changes;
    return ranMs - mayMs;
  }
  /** For how long a leader is known to have led and run since the lease was renewed. */
  #ledMs({ sinceMs, stoodMs }: UnrenewedTime): number {
    return this.#passedUntilMs - sinceMs - (this.#stoodMs - stoodMs);
  }
}
