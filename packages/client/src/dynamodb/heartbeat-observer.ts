/** An entry expires when its heartbeat has not changed for its TTL, by the observer's own clock. */
export interface EntryHeartbeat {
  readonly id: string;
  readonly beat: string;
  readonly ttlMs: number;
}

interface Seen {
  readonly beat: string;
  readonly ttlMs: number;
  readonly sinceMs: number;
}

/** The least recently observed name is evicted first. That only delays the expiry of its entries. */
const maxNames = 10_000;

/**
 * When this process first saw each entry's current heartbeat, by its monotonic clock. Wall clocks of two machines are
 * never compared. Where the monotonic clock stops while the machine sleeps, entries only expire later.
 */
export class HeartbeatObserver {
  readonly #seen = new Map<string, ReadonlyMap<string, Seen>>();

  /** Records the result of a read that ended at `nowMs`, and returns how long each entry still has to live. */
  observe(name: string, heartbeats: readonly EntryHeartbeat[], nowMs: number): ReadonlyMap<string, number> {
    const before = this.#seen.get(name);
    const seen = new Map<string, Seen>();
    const leftMs = new Map<string, number>();
    for (const { id, beat, ttlMs } of heartbeats) {
      const old = before?.get(id);
      // The TTL of the observed heartbeat counts, since a renewal may have shortened the TTL.
      const isSame = old !== undefined && old.beat === beat;
      const now = isSame ? old : { beat, ttlMs, sinceMs: nowMs };
      seen.set(id, now);
      leftMs.set(id, now.sinceMs + now.ttlMs - nowMs);
    }
    this.#seen.delete(name);
    if (seen.size > 0) this.#seen.set(name, seen);
    if (this.#seen.size > maxNames) this.#seen.delete(this.#seen.keys().next().value!);
    return leftMs;
  }
}
