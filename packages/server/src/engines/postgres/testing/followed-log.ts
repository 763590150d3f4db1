import { logStart } from '../../chain-hash.ts';
import type { LogEngine, LoggedEntry } from '../../log-engine.ts';

/** What a follower of the whole log has seen so far. */
export class FollowedLog {
  readonly #seen: LoggedEntry[] = [];
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #waiting: { count: number; resolve: () => void }[] = [];

  constructor(engine: LogEngine) {
    this.#ended = this.#follow(engine);
  }

  get count(): number {
    return this.#seen.length;
  }

  /** Resolves when it has seen so many entries; rejects with what following ended with. */
  async reached(count: number): Promise<void> {
    if (this.#seen.length >= count) return;
    await Promise.race([new Promise<void>((resolve) => this.#waiting.push({ count, resolve })), this.#ended]);
  }

  /** Follows to that many entries, then stops, and gives what it saw. */
  async until(count: number): Promise<readonly LoggedEntry[]> {
    await this.reached(count);
    this.#stop.abort();
    await this.#ended;
    return this.#seen;
  }

  async #follow(engine: LogEngine): Promise<void> {
    for await (const chunk of engine.follow(logStart, this.#stop.signal)) {
      this.#seen.push(...chunk);
      const [reached, waiting] = [true, false].map((wanted) =>
        this.#waiting.filter(({ count }) => this.#seen.length >= count === wanted),
      );
      this.#waiting = waiting ?? [];
      for (const { resolve } of reached ?? []) resolve();
    }
  }
}
