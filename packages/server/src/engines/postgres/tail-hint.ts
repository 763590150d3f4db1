import { AppendNotifier } from '../append-notifier.ts';

/**
 * Notifies followers that the log may have grown. Reading the log takes time here, so a hint that arrives meanwhile is
 * counted: a follower that read before it reads again.
 */
export class TailHint {
  readonly #notifier = new AppendNotifier();
  #count = 0;

  /** The number of hints so far: read it before the log is read. */
  get count(): number {
    return this.#count;
  }

  give(): void {
    this.#count += 1;
    this.#notifier.notify();
  }

  /** Resolves once there is a hint that is not counted in `seen`, or when `signal` aborts. */
  async past(seen: number, signal: AbortSignal): Promise<void> {
    if (this.#count === seen) await this.#notifier.wait(signal);
  }
}
