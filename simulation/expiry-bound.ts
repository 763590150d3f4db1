/** Clocks run this much too fast or too slow, at most. */
export const clockErrorMax = 0.05;
/** An expiry is proposed this long after its moment, at most, on the leader's clock: a sleep and two appends. */
export const expirySlackMs = 1_800;
/** What a change of leader may add besides the time without one: a right's length, and a heartbeat interval. */
export const changeSlackMs = 1_000;
/** How long a leader may act from the beginning of its last append that came back. */
export const rightMs = 800;
/** A lease that goes unrenewed for this part of its TTL is dated, within a sleep of the timer and two appends. */
const datedAt = 2 / 3;

/** When a lease was last renewed, and what has happened to its time since. */
export interface UnrenewedTime {
  readonly sinceMs: number;
  readonly stoodMs: number;
  /** How long it was live before the first change of leader that found it so: its TTL begins anew there, once. */
  carriedMs: number;
  changes: number;
}

/**
 * The longest that a lease may outlive its last renewal, in true time, whatever happens to the leaders: its TTL, once
 * more the time that it had been live when the leader changed, and all time in which no leader led or the one that
 * did stood still. Cluster time does not pass then, and nothing else may hold it up.
 */
export class ExpiryBound {
  readonly #stoppedMs: (leader: string) => number;
  /** In all, so far. */
  #stoodMs = 0;
  /** Until when cluster time is known to have passed, and how long its leader had stood still by then. */
  #passedUntilMs = 0;
  #leaderStoppedMs = 0;

  /** `stoppedMs` is how long that leader has stood still in all, in true time. */
  constructor(stoppedMs: (leader: string) => number) {
    this.#stoppedMs = stoppedMs;
  }

  /** The leader of the epoch has an entry in the log whose append began, and was stamped, at `beganMs`. */
  appended(leader: string, beganMs: number): void {
    const stoppedMs = this.#stoppedMs(leader);
    const passedMs = Math.max(0, beganMs - this.#passedUntilMs);
    this.#stoodMs += Math.min(passedMs, Math.max(0, stoppedMs - this.#leaderStoppedMs));
    this.#passedUntilMs += passedMs;
    this.#leaderStoppedMs = stoppedMs;
  }

  /** An epoch begins. `live` are the leases that were live in one before; tells of those that went undated too long. */
  changed(leader: string, nowMs: number, leases: Iterable<{ ttlMs: number; time: UnrenewedTime; isLive: boolean }>) {
    let undated = 0;
    for (const { ttlMs, time, isLive } of leases) {
      time.changes += 1;
      if (!isLive) continue;
      time.carriedMs = Math.max(0, this.#passedUntilMs - time.sinceMs - (this.#stoodMs - time.stoodMs));
      if (time.carriedMs > (ttlMs * datedAt) / (1 - clockErrorMax) + expirySlackMs) undated += 1;
    }
    this.#stoodMs += Math.max(0, nowMs - this.#passedUntilMs);
    this.#passedUntilMs = nowMs;
    this.#leaderStoppedMs = this.#stoppedMs(leader);
    return undated;
  }

  renewed(atMs: number): UnrenewedTime {
    return { sinceMs: atMs, stoodMs: this.#stoodMs, carriedMs: 0, changes: 0 };
  }

  /** How much longer than it may a lease has been there by now; negative while all is well. */
  lateMs(ttlMs: number, time: UnrenewedTime, nowMs: number): number {
    // Whose append is out for longer than its right does not lead.
    const outMs = Math.max(0, nowMs - this.#passedUntilMs - rightMs);
    const ranMs = nowMs - time.sinceMs - (this.#stoodMs + outMs - time.stoodMs);
    const mayMs = (ttlMs + time.carriedMs) / (1 - clockErrorMax) + expirySlackMs + changeSlackMs * time.changes;
    return ranMs - mayMs;
  }
}
