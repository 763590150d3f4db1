import { BackendError } from '../errors/backend-error.ts';
import { abortable } from '../time/abortable.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { backendErrorOf, isRolledBack } from './backend-error-of.ts';
import type { PostgresClient, PostgresPool, PostgresResult } from './postgres-pool.ts';

/** How often a statement is sent again that the database rolled back in favour of others. */
const rolledBackRetriesMax = 10;
const retryPauseMs = 10;
/** A connection whose caller has gone is kept when the answer comes within this time, and closed otherwise. */
const abandonedGraceMs = 1_000;
/** The database itself ends a transaction of a client that was cut off or stopped in the middle of it. */
const idleInTransactionMs = 5_000;

const begin = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL idle_in_transaction_session_timeout = ${idleInTransactionMs}`;

/** Sends one statement at a time on a connection of the pool, which may be another one each time. */
export class StatementRunner {
  readonly #pool: PostgresPool;
  readonly #closed = new AbortController();

  constructor(pool: PostgresPool) {
    this.#pool = pool;
  }

  /** The rows. Rejects with a BackendError, or with the reason of the signal. */
  async run(text: string, values: readonly unknown[], signal: Signal): Promise<readonly Record<string, unknown>[]> {
    const { rows } = await this.#withClient(signal, (client) => sendUntilDone(client, text, [...values]));
    return rows as readonly Record<string, unknown>[];
  }

  /** Several statements without values, all or none of them. */
  async runScript(text: string, signal: Signal): Promise<void> {
    await this.#withClient(signal, (client) => inTransaction(client, () => client.query(text)));
  }

  /** What is under way ends with a BackendError of code closed, and so does every later call. */
  close(): void {
    this.#closed.abort(new BackendError('postgres', 'closed', 'the backend has been closed'));
  }

  async #withClient<T>(signal: Signal, work: (client: PostgresClient) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    return abortable(abortable(this.#lend(work, signal), this.#closed.signal), signal);
  }

  async #lend<T>(work: (client: PostgresClient) => Promise<T>, signal: Signal): Promise<T> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw backendErrorOf(error);
    });
    if (signal.aborted || this.#closed.signal.aborted) {
      client.release();
      throw new BackendError('postgres', 'unavailable', 'who asked has gone');
    }
    let isReleased = false;
    const release = (error?: Error): void => {
      if (isReleased) return;
      isReleased = true;
      if (error === undefined) client.removeListener('error', ignore);
      client.release(error);
    };
    client.on('error', ignore);
    let timer: NodeJS.Timeout | undefined;
    const abandon = (): void => {
      timer ??= setTimeout(() => release(new Error('no answer, and who asked has gone')), abandonedGraceMs).unref();
    };
    const forget = [onAbort(signal, abandon), onAbort(this.#closed.signal, abandon)];
    try {
      const result = await work(client);
      release();
      return result;
    } catch (error) {
      const failure = backendErrorOf(error);
      // Where the state of the connection is in doubt it serves nobody else.
      release(failure.backendCode === 'unavailable' ? failure : undefined);
      throw failure;
    } finally {
      clearTimeout(timer);
      for (const one of forget) one();
    }
  }
}

/**
 * As one statement by itself, which is a transaction of its own. Where the default isolation is stricter than READ
 * COMMITTED the database may roll it back in favour of others, and then it is sent again in a transaction that is not.
 */
async function sendUntilDone(client: PostgresClient, text: string, values: unknown[]): Promise<PostgresResult> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await (attempt === 0
        ? client.query(text, values)
        : inTransaction(client, () => client.query(text, values)));
    } catch (error) {
      if (!isRolledBack(error) || attempt >= rolledBackRetriesMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * retryPauseMs * (attempt + 1)));
    }
  }
}

async function inTransaction<T>(client: PostgresClient, work: () => Promise<T>): Promise<T> {
  await client.query(begin);
  try {
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // A connection that can't do even this is closed, which ends the transaction as well.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** A connection that breaks fails its statement; the event besides would end the process if nobody took it. */
function ignore(): void {}
