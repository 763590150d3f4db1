/**
 * Wakes those who wait for the log to grow. A ring is a hint: whoever wakes looks for himself, so a ring that nobody
 * waits for is not kept. Check and wait without an `await` in between, or a ring may be missed.
 */
export class TailBell {
  readonly #waiting = new Set<() => void>();

  ring(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Resolves at the next ring, or when `signal` aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }
}
