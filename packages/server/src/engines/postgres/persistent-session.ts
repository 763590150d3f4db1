import { EngineError } from '../engine-error.ts';
import { unavailable } from './postgres-failure.ts';
import type { PostgresSession } from './postgres-session.ts';

/**
 * The first attempt after a loss starts at once, unless the session had lived for less than the maximum delay; later
 * delays double up to the maximum.
 */
const firstPauseMs = 50;
const longestPauseMs = 1_000;

export interface PersistentSessionOptions {
  /** Opens a session and prepares it. Retried without limit, one attempt at a time. */
  readonly open: (signal: AbortSignal) => Promise<PostgresSession>;
  /** Called when the session is lost and for each failed attempt, with the error, and when there is a session again. */
  readonly onDown: (error: unknown) => void;
  readonly onUp: () => void;
}

interface Waiter {
  readonly resolve: (session: PostgresSession) => void;
  readonly reject: (error: Error) => void;
  /** Whether a failed attempt ends the wait. */
  readonly isImpatient: boolean;
}

/** Keeps one session with the primary open: when it is lost, another one is opened. */
export class PersistentSession {
  readonly #options: PersistentSessionOptions;
  readonly #closing = new AbortController();
  #session: PostgresSession | undefined;
  #waiters = new Set<Waiter>();
  #reopening: Promise<void> | undefined;

  /** Takes over an open, prepared session. */
  constructor(session: PostgresSession, options: PersistentSessionOptions) {
    this.#options = options;
    this.#keep(session);
  }

  /** A session, once there is one. Rejects with `closed`, or when `signal` aborts, with its reason. */
  whenUp(signal: AbortSignal): Promise<PostgresSession> {
    return this.#wait(false, signal);
  }

  /** A session now, or the outcome of the current or next attempt. Rejects with `unavailable` or `closed`. */
  nowOrNextTry(): Promise<PostgresSession> {
    return this.#wait(true, undefined);
  }

  /** No further session is opened: all waiting and later calls get `reason`. */
  end(reason: EngineError): void {
    this.#closing.abort(reason);
    this.#settle(({ reject }) => reject(reason));
  }

  async close(): Promise<void> {
    this.#closing.abort(new EngineError('closed', 'the log engine is closed'));
    this.#settle(({ reject }) => reject(this.#closing.signal.reason as Error));
    await Promise.allSettled([this.#session?.end(), this.#reopening]);
  }

  /** Closes the session, so that the next one looks up the primary again. */
  breakOff(reason: Error): void {
    this.#session?.destroy(reason);
  }

  async #wait(isImpatient: boolean, signal: AbortSignal | undefined): Promise<PostgresSession> {
    this.#closing.signal.throwIfAborted();
    signal?.throwIfAborted();
    if (this.#session !== undefined && this.#session.lostBecause === undefined) return this.#session;
    return await new Promise((resolve, reject) => {
      const done = (): void => {
        this.#waiters.delete(waiter);
        signal?.removeEventListener('abort', aborted);
      };
      const aborted = (): void => waiter.reject(signal?.reason as Error);
      const waiter: Waiter = {
        isImpatient,
        resolve: (session) => (done(), resolve(session)),
        reject: (error) => (done(), reject(error)),
      };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', aborted);
    });
  }

  #keep(session: PostgresSession): void {
    const openedAt = performance.now();
    this.#session = session;
    this.#options.onUp();
    this.#settle(({ resolve }) => resolve(session));
    session.whenLost(() => {
      this.#session = undefined;
      if (this.#closing.signal.aborted) return;
      this.#options.onDown(session.lostBecause);
      const lived = performance.now() - openedAt;
      this.#reopening = this.#reopen(lived < longestPauseMs);
    });
  }

  async #reopen(pauseFirst: boolean): Promise<void> {
    const { signal } = this.#closing;
    if (pauseFirst) await this.#pause(firstPauseMs);
    for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        const session = await this.#options.open(signal);
        if (signal.aborted) await session.end();
        else this.#keep(session);
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#options.onDown(error);
        const failure = error instanceof EngineError ? error : unavailable('the database cannot be reached', error);
        this.#settle(({ isImpatient, reject }) => isImpatient && reject(failure));
        await this.#pause(pauseMs);
      }
    }
  }

  /** Random delays keep servers that lost the same database from reconnecting in step. */
  #pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    return new Promise((resolve) => {
      const over = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', over);
        resolve();
      };
      const timer = setTimeout(over, ms * (0.5 + Math.random() / 2));
      signal.addEventListener('abort', over);
    });
  }

  #settle(how: (waiter: Waiter) => unknown): void {
    for (const waiter of this.#waiters) how(waiter);
  }
}
