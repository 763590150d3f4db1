import { abortable } from '../time/abortable.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';

/** What differs from one pool to the next. */
export interface ConnectionLenderOptions<Connection> {
  /** Takes a connection from the pool. */
  readonly take: () => Promise<Connection>;
  /** Returns it. With a failure, its state is unknown, and it must not be used again. */
  readonly giveBack: (connection: Connection, failure: Error | undefined) => void;
  /** The BackendError for what the driver throws. */
  readonly errorOf: (error: unknown) => Error & { readonly backendCode: string };
  /** With what calls in flight, and all later ones, end after `close`. */
  readonly closedError: () => Error;
}

/** A connection whose caller has aborted is kept if the answer comes within this time, and closed otherwise. */
const abandonedGraceMs = 1_000;
/** How often a statement is sent again that the database rolled back because of a conflict. */
const rolledBackRetriesMax = 10;
const retryPauseMs = 10;

/** Lends connections of a pool to one piece of work at a time, and returns each in a known state. */
export class ConnectionLender<Connection> {
  readonly #options: ConnectionLenderOptions<Connection>;
  readonly #closed = new AbortController();

  constructor(options: ConnectionLenderOptions<Connection>) {
    this.#options = options;
  }

  /** `work` has the connection for itself. Rejects with a BackendError, or with the reason of the signal. */
  async lend<T>(signal: Signal, work: (connection: Connection) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    return abortable(abortable(this.#lend(signal, work), this.#closed.signal), signal);
  }

  /** Calls in flight end with the closed error, and so does every later call. */
  close(): void {
    this.#closed.abort(this.#options.closedError());
  }

  async #lend<T>(signal: Signal, work: (connection: Connection) => Promise<T>): Promise<T> {
    const { take, giveBack, errorOf } = this.#options;
    const connection = await take().catch((error: unknown) => {
      throw errorOf(error);
    });
    let isReturned = false;
    const end = (failure?: Error): void => {
      if (isReturned) return;
      isReturned = true;
      giveBack(connection, failure);
    };
    const { signal: closed } = this.#closed;
    if (signal.aborted || closed.aborted) {
      end();
      throw new Error('the caller has aborted');
    }
    let timer: NodeJS.Timeout | undefined;
    const abandon = (): void => {
      timer ??= setTimeout(() => end(new Error('no answer, and the caller has aborted')), abandonedGraceMs).unref();
    };
    const forget = [onAbort(signal, abandon), onAbort(closed, abandon)];
    try {
      const result = await work(connection);
      end();
      return result;
    } catch (error) {
      const failure = errorOf(error);
      end(failure.backendCode === 'unavailable' ? failure : undefined);
      throw failure;
    } finally {
      clearTimeout(timer);
      for (const one of forget) one();
    }
  }
}

/** Sends a statement that is its own transaction, again if the database rolled it back because of a conflict. */
export async function retryRolledBack<T>(
  isRolledBack: (error: unknown) => boolean,
  send: (tried: number) => Promise<T>,
): Promise<T> {
  for (let tried = 0; ; tried++) {
    try {
      return await send(tried);
    } catch (error) {
      if (!isRolledBack(error) || tried >= rolledBackRetriesMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * retryPauseMs * (tried + 1)));
    }
  }
}
