import type { ClusterMember } from './cluster-member.ts';
import { grantMany } from './kept-leases.ts';
import type { LastingWatch } from './lasting-watch.ts';

interface Abandoned {
  readonly key: string;
  readonly ttlMs: number;
  /** When its grant was sent: the lease lives for at least its TTL from then. */
  readonly sentMs: number;
  /** When its grant was acknowledged: the lease lives for at most the bound from then. */
  readonly acknowledgedMs: number;
}

/** Leases with a key each that are never renewed. */
export class AbandonedLeases {
  readonly #leases = new Map<string, Abandoned>();
  readonly #ttlMs: number;

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  get count(): number {
    return this.#leases.size;
  }

  /** Grants so many leases, through each server in turn, with ids from `firstId` on. */
  async abandon(members: readonly ClusterMember[], count: number, firstId: bigint): Promise<void> {
    const ttlMs = this.#ttlMs;
    await grantMany({ members, count, firstId, ttlMs, prefix: 'abandoned' }, (id, _, sentMs) => {
      const key = `abandoned/${id}`;
      this.#leases.set(key, { key, ttlMs, sentMs, acknowledgedMs: performance.now() });
    });
  }

  /**
   * Resolves when all keys are gone. Throws if a key was deleted before its TTL had passed, or later than
   * `boundMs(from, to)` after its acknowledgement, for the time from its grant to its end.
   */
  async check(watch: LastingWatch, boundMs: (fromMs: number, toMs: number) => number): Promise<void> {
    const ends = new Map<string, number>();
    for (const { key } of this.#leases.values()) {
      await watch.seen((event) => event.key === key && event.value === undefined);
    }
    for (const { key, value, atMs } of watch.events) if (value === undefined) ends.set(key, atMs);
    let latestMs = 0;
    for (const { key, ttlMs, sentMs, acknowledgedMs } of this.#leases.values()) {
      const endMs = ends.get(key) ?? Infinity;
      const livedMs = Math.round(endMs - acknowledgedMs);
      if (endMs - sentMs <= ttlMs)
        throw new Error(`${key} was deleted ${Math.round(endMs - sentMs)} ms after its grant`);
      const atMostMs = boundMs(acknowledgedMs, endMs);
      if (livedMs > atMostMs)
        throw new Error(`${key} lived for ${livedMs} ms, not for ${Math.round(atMostMs)} at most`);
      latestMs = Math.max(latestMs, livedMs);
    }
    console.log(`of ${this.count} abandoned leases of ${this.#ttlMs} ms the last one expired after ${latestMs} ms`);
  }
}
