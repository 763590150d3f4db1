/**
 * Notifies followers that the log may have grown. A notification is a hint that is not stored: the follower reads the
 * log itself. Check and wait without an `await` in between, or a notification may be missed.
 */
export class AppendNotifier {
  readonly #waiting = new Set<() => void>();

  notify(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Resolves at the next notification, or when `signal` aborts. */
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
