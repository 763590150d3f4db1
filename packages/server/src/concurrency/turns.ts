/** Runs at most so many jobs at once; the others begin in order of arrival. */
export class Turns {
  readonly #maxRunning: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(maxRunning: number) {
    this.#maxRunning = maxRunning;
  }

  async run<Result>(job: () => Promise<Result>): Promise<Result> {
    if (this.#running === this.#maxRunning) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await job();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
