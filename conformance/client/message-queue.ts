import type { CallStatus } from './refusal.ts';

const defaultPatienceMs = 30_000;

interface Waiter<T> {
  readonly wanted: (message: T) => boolean;
  readonly resolve: (message: T) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The messages of one stream, in order of arrival, until they are taken. The reader selects a message with a predicate,
 * so that other messages on the same stream stay queued.
 */
export class MessageQueue<T> {
  readonly #messages: T[] = [];
  readonly #waiters: Waiter<T>[] = [];
  #status: CallStatus | undefined;

  push(message: T): void {
    const index = this.#waiters.findIndex((waiter) => waiter.wanted(message));
    const [waiter] = index === -1 ? [] : this.#waiters.splice(index, 1);
    if (waiter === undefined) this.#messages.push(message);
    else waiter.resolve(message);
  }

  /** No message follows: waiting readers get the end of the stream. */
  close(status: CallStatus): void {
    this.#status = status;
    for (const waiter of this.#waiters.splice(0)) waiter.reject(this.#endedError());
  }

  /** Takes the oldest matching message, waiting for it if necessary. */
  async take(what: string, wanted: (message: T) => boolean, patienceMs = defaultPatienceMs): Promise<T> {
    const index = this.#messages.findIndex(wanted);
    const [message] = index === -1 ? [] : this.#messages.splice(index, 1);
    if (message !== undefined) return message;
    if (this.#status !== undefined) throw this.#endedError();
    let timer: NodeJS.Timeout | undefined;
    const arrival = new Promise<T>((resolve, reject) => {
      const waiter: Waiter<T> = { wanted, resolve, reject };
      this.#waiters.push(waiter);
      timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(
          new Error(
            `waited ${patienceMs} ms without success for ${what}; ${this.#messages.length} other messages wait`,
          ),
        );
      }, patienceMs);
    });
    try {
      return await arrival;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Takes all matching messages that have arrived, without waiting. */
  takeArrived(wanted: (message: T) => boolean): T[] {
    const taken = this.#messages.filter(wanted);
    const left = this.#messages.filter((message) => !wanted(message));
    this.#messages.splice(0, this.#messages.length, ...left);
    return taken;
  }

  #endedError(): Error {
    const status = this.#status;
    return new Error(`the stream ended with code ${status?.code}: ${status?.details}`);
  }
}
