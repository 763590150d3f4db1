/** Node keeps a process alive for as long as a timer is set; what it calls back does not matter. */
const intervalMs = 2 ** 30;

/**
 * Keeps the process alive while something is going on that it should not end in the middle of. All other timers of the
 * library are unreferenced, so that this is the one place that decides.
 */
export class ProcessRef {
  readonly #isUsed: boolean;
  #takers = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** With `unref` it does nothing. */
  constructor(options: { readonly unref: boolean }) {
    this.#isUsed = !options.unref;
  }

  /** From now on, until the function that it gives is called. */
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

  /** Until the promise has settled. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const release = this.take();
    try {
      return await work();
    } finally {
      release();
    }
  }
}
