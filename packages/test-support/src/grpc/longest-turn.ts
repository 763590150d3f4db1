import { closeSync, openSync, readSync } from 'node:fs';

/**
 * Measures the processor time of each turn of the event loop: what other programs take from the machine does not count.
 * Linux alone tells it for one thread.
 */
export class LongestTurn {
  readonly #file = openSync('/proc/self/schedstat', 'r');
  readonly #text = Buffer.alloc(64);
  #lastMs: number;
  #longestMs = 0;
  #isOver = false;

  constructor() {
    this.#lastMs = this.#usedMs();
    this.#turn();
  }

  /** The longest one so far; the next ones are measured from here. */
  take(): number {
    const longestMs = this.#longestMs;
    this.#longestMs = 0;
    return longestMs;
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    closeSync(this.#file);
  }

  #turn(): void {
    if (this.#isOver) return;
    const nowMs = this.#usedMs();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
    setImmediate(() => this.#turn());
  }

  #usedMs(): number {
    const length = readSync(this.#file, this.#text, 0, this.#text.length, 0);
    return Number(this.#text.toString('latin1', 0, length).split(' ')[0]) / 1e6;
  }
}
