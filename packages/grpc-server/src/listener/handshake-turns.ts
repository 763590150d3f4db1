/** Handshakes begin for this long in one turn of the event loop; the last one is finished. */
const sliceMs = 5;
/** Of one turn, while they take less than that. */
const maxPerTurn = 16;

/**
 * TLS handshakes begin here, a few in each turn of the event loop. One takes up to some milliseconds of it, for the
 * signature of an RSA key, and all clients connect again at once when a server has started.
 */
export class HandshakeTurns {
  /** In order of arrival; limited by the connections that may be open. */
  readonly #waiting = new Set<() => void>();
  #turnBeganMs = 0;
  #scheduled = 0;

  /** Calls `begin` in its turn. Returns a function that takes it out of the queue. */
  add(begin: () => void): () => void {
    this.#waiting.add(begin);
    this.#schedule();
    return () => void this.#waiting.delete(begin);
  }

  #schedule(): void {
    if (this.#scheduled > 0) return;
    this.#turnBeganMs = 0;
    this.#scheduled = Math.min(maxPerTurn, this.#waiting.size);
    // Node runs what one callback has begun, and so the handshake, before it calls the next.
    for (let at = 0; at < this.#scheduled; at += 1) setImmediate(() => this.#beginOne());
  }

  #beginOne(): void {
    this.#scheduled -= 1;
    const nowMs = performance.now();
    if (this.#turnBeganMs === 0) this.#turnBeganMs = nowMs;
    const [begin] = this.#waiting;
    if (begin !== undefined && nowMs - this.#turnBeganMs < sliceMs) {
      this.#waiting.delete(begin);
      begin();
    }
    if (this.#scheduled === 0 && this.#waiting.size > 0) this.#schedule();
  }
}
