import { callIsOver } from './grpc-status.ts';

/** The sends of one stream that wait for it to drain: those that a handler makes without waiting share one promise. */
export class WaitingSends {
  #promise: Promise<void> | undefined;
  #resolve: () => void = () => {};
  #reject: (error: Error) => void = () => {};

  /** Resolves when the stream has drained, rejects when it is over. */
  wait(): Promise<void> {
    if (this.#promise !== undefined) return this.#promise;
    const promise = new Promise<void>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // A handler that does not await its sends must not leave a rejection unhandled when its client disconnects.
    promise.catch(() => {});
    this.#promise = promise;
    return promise;
  }

  drained(): void {
    this.#promise = undefined;
    this.#resolve();
  }

  over(): void {
    // A connection that ends with all its streams has no time for an error that is passed to nothing.
    if (this.#promise === undefined) return;
    this.#promise = undefined;
    this.#reject(callIsOver());
  }
}
