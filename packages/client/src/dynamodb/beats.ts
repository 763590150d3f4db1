/** What an observer goes by: an entry whose beat does not change for its TTL, by the observer's own clock, is dead. */
export interface Beat {
  readonly id: string;
  readonly beat: string;
  readonly ttlMs: number;
}

interface Seen {
  readonly beat: string;
  readonly ttlMs: number;
  readonly sinceMs: number;
}

/** A name that was not looked at for longest is forgotten first: its entries then only live longer. */
const maxNames = 10_000;

/**
 * Since when each entry stands at its last renewal, by this process's monotonic clock. No machine's wall clock is
 * compared with another's; where the clock stands still while the machine sleeps, entries only live longer.
 */
export class Beats {
  readonly #seen = new Map<string, ReadonlyMap<string, Seen>>();

  /** Takes in what a read has shown that ended at `nowMs`, and says for how long each entry still counts as alive. */
  observe(name: string, beats: readonly Beat[], nowMs: number): ReadonlyMap<string, number> {
    const before = this.#seen.get(name);
    const seen = new Map<string, Seen>();
    const leftMs = new Map<string, number>();
    for (const { id, beat, ttlMs } of beats) {
      const old = before?.get(id);
      // A renewal may ask for less time, but what was promised before it was not less.
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
