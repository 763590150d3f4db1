import type { ClientHttp2Session } from 'node:http2';

/** A timer that is late by more than this part of its time shows a pause of this process. */
const latePart = 0.25;

/**
 * Ends a connection whose server does not answer a PING in time. It decides only after the sockets have been read once
 * more: after a pause of this process its timers are due before the answer, which waits in the socket, is read. A timer
 * that was late gives the server the time once more, and only once: with the machine, the network may have paused too.
 */
export class AnswerTimer {
  readonly #session: ClientHttp2Session;
  readonly #timeoutMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(session: ClientHttp2Session, timeoutMs: number) {
    this.#session = session;
    this.#timeoutMs = timeoutMs;
    this.#start(true);
  }

  /** The server has answered, or the connection has ended. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #start(isFirst: boolean): void {
    const startedMs = performance.now();
    this.#timer = setTimeout(() => {
      const isLate = performance.now() - startedMs > this.#timeoutMs * (1 + latePart);
      // The sockets are read between the timers of a turn and this.
      setImmediate(() => {
        if (this.#isStopped || this.#session.destroyed) return;
        if (isLate && isFirst) this.#start(false);
        else this.#session.destroy(new Error('the server gave no sign of life'));
      });
    }, this.#timeoutMs);
    this.#timer.unref();
  }
}
