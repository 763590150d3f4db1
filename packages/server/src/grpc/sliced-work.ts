import { ProposalError } from '../replica/proposal-error.ts';

/** A piece of work that may take long: each call does a short step of it, and returns whether all is done. */
export type WorkStep = () => boolean;

export interface SlicedWorkOptions {
  readonly nowMs?: () => number;
  /** Calls back when the event loop has looked at its sockets and timers. */
  readonly nextTurn?: (callback: () => void) => void;
}

/** The event loop is held for about so long in a turn, however much work there is. */
const sliceMs = 4;
/** Jobs that take turns: what each holds in memory is there so many times at once. */
const maxRunning = 4;
/** Jobs that wait for those; what comes on top is refused. */
const maxWaiting = 1_024;

interface Job {
  readonly step: WorkStep;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Does long work in slices, one in each turn of the event loop, so that no other request waits for more than a slice.
 * Those that have begun take turns; the others begin in the order in which they came.
 */
export class SlicedWork {
  readonly #nowMs: () => number;
  readonly #nextTurn: (callback: () => void) => void;
  readonly #running: Job[] = [];
  readonly #waiting: Job[] = [];
  #isScheduled = false;

  constructor({ nowMs = () => performance.now(), nextTurn = setImmediate }: SlicedWorkOptions = {}) {
    this.#nowMs = nowMs;
    this.#nextTurn = nextTurn;
  }

  /** Jobs that are not done. */
  get size(): number {
    return this.#running.length + this.#waiting.length;
  }

  /** Resolves when `step` has returned true; rejects with what it throws, or as overloaded without having called it. */
  run(step: WorkStep): Promise<void> {
    if (this.#waiting.length >= maxWaiting) {
      return Promise.reject(new ProposalError('overloaded', 'too many long requests wait for their turn'));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ step, resolve, reject });
      this.#begin();
    });
  }

  #begin(): void {
    while (this.#running.length < maxRunning && this.#waiting.length > 0) this.#running.push(this.#waiting.shift()!);
    if (this.#isScheduled || this.#running.length === 0) return;
    this.#isScheduled = true;
    this.#nextTurn(() => {
      this.#isScheduled = false;
      this.#slice();
      this.#begin();
    });
  }

  #slice(): void {
    const job = this.#running.shift()!;
    const endMs = this.#nowMs() + sliceMs;
    try {
      let done = job.step();
      while (!done && this.#nowMs() < endMs) done = job.step();
      if (done) job.resolve();
      else this.#running.push(job);
    } catch (error) {
      job.reject(error);
    }
  }
}
