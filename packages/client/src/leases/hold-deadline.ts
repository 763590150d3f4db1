/** The share of the TTL that a hold gives up, so that it ends before another entry can hold. */
const marginShare = 0.1;
/** With a short TTL the share would be smaller than the precision of clocks and timers. */
const marginMinMs = 20;
const marginMaxShare = 0.5;

/**
 * Until when this process may rely on one of its entries, in `ElapsedTime`. It counts from when the enter or renewal
 * that succeeded was *sent*: the backend received it later, so the entry outlives the deadline by at least the margin,
 * however long the answer took.
 */
export class HoldDeadline {
  #atMs: number;

  constructor(sentAtMs: number, ttlMs: number) {
    this.#atMs = sentAtMs + usableMs(ttlMs);
  }

  get atMs(): number {
    return this.#atMs;
  }

  /** True from the deadline on, inclusive. */
  hasPassed(nowMs: number): boolean {
    return nowMs >= this.#atMs;
  }

  /** A renewal sent at that time has succeeded. One that was sent before the last one changes nothing. */
  extend(sentAtMs: number, ttlMs: number): void {
    this.#atMs = Math.max(this.#atMs, sentAtMs + usableMs(ttlMs));
  }
}

function usableMs(ttlMs: number): number {
  return ttlMs - Math.max(ttlMs * marginShare, Math.min(marginMinMs, ttlMs * marginMaxShare));
}
