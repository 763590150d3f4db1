/** A pending timer keeps a Node process alive. Its callback does nothing. */
const intervalMs = 2 ** 30;

/**
 * Keeps the process alive while an operation is in progress. All other timers of the library are unreferenced, so this
 * is the only place that decides it.
 */
export class ProcessRef {
  readonly #isUsed: boolean;
  #takers = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** With `unref` it does nothing. */
  constructor(options: { readonly unref: boolean }) {
    this.#isUsed = !options.unref;
  }

  /** Keeps the process alive until the returned function is called. */
  take(): () => void {
    if (!this.#isUsed) return () => {};
    this.#takers++;
    this.#timer ??= setInterval(() => {}, intervalMs);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      if (--this.#takers > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Keeps the process alive until the promise has settled. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const release = this.take();
    try {
      return await work();
    } finally {
      release();
    }
  }
}
