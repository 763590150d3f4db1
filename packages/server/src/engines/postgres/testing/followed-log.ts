import { logStart } from '../../chain-hash.ts';
import type { LogEngine, LoggedEntry } from '../../log-engine.ts';

/** The entries that a follower of the whole log has received so far. */
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

  /** Resolves when it has received that many entries; rejects with the error of the follower. */
  async reached(count: number): Promise<void> {
    if (this.#seen.length >= count) return;
    await Promise.race([new Promise<void>((resolve) => this.#waiting.push({ count, resolve })), this.#ended]);
  }

  /** Follows until there are that many entries, then stops and returns them. */
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
