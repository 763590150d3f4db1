import { TailBell } from '../tail-bell.ts';

/**
 * Tells followers that the log may have grown. Looking at the log takes time here, so a hint that comes meanwhile is
 * counted: whoever looked before it looks again.
 */
export class TailHint {
  readonly #bell = new TailBell();
  #count = 0;

  /** How many hints there were: read it before the log is read. */
  get count(): number {
    return this.#count;
  }

  give(): void {
    this.#count += 1;
    this.#bell.ring();
  }

  /** Resolves once there is a hint that `seen` does not count, or when `signal` aborts. */
  async past(seen: number, signal: AbortSignal): Promise<void> {
    if (this.#count === seen) await this.#bell.wait(signal);
  }
}
