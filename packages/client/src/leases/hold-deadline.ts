/** What a hold gives up of its entry's life, so that it ends before anybody else can be granted. */
const marginShare = 0.1;
/** With a short life the share would be less than clocks and timers are exact. */
const marginMinMs = 20;
const marginMaxShare = 0.5;

/**
 * Until when this process may count on one entry of its own, in `ElapsedTime`. It is counted from when the enter or
 * the renewal that succeeded was *sent*: the backend saw it later than that, so the entry outlives the deadline by the
 * margin at least, however long the answer took.
 */
export class HoldDeadline {
  #atMs: number;

  constructor(sentAtMs: number, ttlMs: number) {
    this.#atMs = sentAtMs + lifeMs(ttlMs);
  }

  get atMs(): number {
    return this.#atMs;
  }

  /** At the deadline itself it has passed. */
  hasPassed(nowMs: number): boolean {
    return nowMs >= this.#atMs;
  }

  /** A renewal that was sent then has succeeded. One that was sent earlier than the last changes nothing. */
  extend(sentAtMs: number, ttlMs: number): void {
    this.#atMs = Math.max(this.#atMs, sentAtMs + lifeMs(ttlMs));
  }
}

function lifeMs(ttlMs: number): number {
  return ttlMs - Math.max(ttlMs * marginShare, Math.min(marginMinMs, ttlMs * marginMaxShare));
}
