/** Limit on clients whose failures are remembered; the one that failed least recently is forgotten. */
const maxClients = 10_000;
/** A user who mistypes waits for nothing. */
const freeFailures = 4;
const firstDelayMs = 100;
const maxDelayMs = 5_000;
/** Each failure counts for this long after the one before it is forgotten. */
const forgetMs = 60_000;
/** More failures change no delay; without a limit a client would be slow for days. */
const maxFailures = 15;

interface Failures {
  readonly count: number;
  readonly lastMs: number;
}

/**
 * How long a client waits after wrong passwords: from the fifth on the delay doubles, from 0.1 s to 5 s. Only time
 * makes up for a failure: one a minute. A guesser who has an account of their own could log in between two guesses, so
 * a success makes up for nothing.
 */
export class FailureBackoff {
  /** In the order of the last failures. */
  readonly #clients = new Map<string, Failures>();

  get size(): number {
    return this.#clients.size;
  }

  failed(client: string, nowMs: number): void {
    const count = Math.min(maxFailures, this.#countOf(client, nowMs) + 1);
    this.#clients.delete(client);
    this.#clients.set(client, { count, lastMs: nowMs });
    if (this.#clients.size <= maxClients) return;
    for (const oldest of this.#clients.keys()) return void this.#clients.delete(oldest);
  }

  /** When the client's next attempt may begin; in the past for most. */
  readyAtMs(client: string, nowMs: number): number {
    const failures = this.#clients.get(client);
    if (failures === undefined) return -Infinity;
    const count = this.#countOf(client, nowMs);
    if (count === 0) this.#clients.delete(client);
    if (count <= freeFailures) return -Infinity;
    return failures.lastMs + Math.min(maxDelayMs, firstDelayMs * 2 ** (count - freeFailures - 1));
  }

  #countOf(client: string, nowMs: number): number {
    const failures = this.#clients.get(client);
    if (failures === undefined) return 0;
    return Math.max(0, failures.count - Math.floor((nowMs - failures.lastMs) / forgetMs));
  }
}
