import { BackendError } from '../errors/backend-error.ts';
import { abortable } from '../time/abortable.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { backendErrorOf, isRolledBack } from './backend-error-of.ts';
import type { MysqlConnection, MysqlPool } from './mysql-pool.ts';

/** How often a statement is sent again that ended in a deadlock: the database has rolled it back. */
const deadlockRetriesMax = 10;
const retryPauseMs = 10;
/** A connection whose caller has gone is kept when the answer comes within this time, and closed otherwise. */
const abandonedGraceMs = 1_000;
const noAutocommit = 'the connections of the pool need autocommit = 1: each statement is a transaction of its own';

/** Lends connections of the pool for a statement or a few, and takes them back in order. */
export class StatementRunner {
  readonly #pool: MysqlPool;
  readonly #closed = new AbortController();
  #isChecked = false;

  constructor(pool: MysqlPool) {
    this.#pool = pool;
  }

  /** `work` gets one connection for itself. Rejects with a BackendError, or with the reason of the signal. */
  async withConnection<T>(signal: Signal, work: (connection: MysqlConnection) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    return abortable(abortable(this.#lend(work, signal), this.#closed.signal), signal);
  }

  /** What is under way ends with a BackendError of code closed, and so does every later call. */
  close(): void {
    this.#closed.abort(new BackendError('mysql', 'closed', 'the backend has been closed'));
  }

  async #lend<T>(work: (connection: MysqlConnection) => Promise<T>, signal: Signal): Promise<T> {
    const connection = await this.#pool.getConnection().catch((error: unknown) => {
      throw backendErrorOf(error);
    });
    let isReturned = false;
    const giveBack = (isSound: boolean): void => {
      if (isReturned) return;
      isReturned = true;
      if (isSound) connection.release();
      else connection.destroy();
    };
    if (signal.aborted || this.#closed.signal.aborted) {
      giveBack(true);
      throw new BackendError('mysql', 'unavailable', 'who asked has gone');
    }
    let timer: NodeJS.Timeout | undefined;
    const abandon = (): void => {
      timer ??= setTimeout(() => giveBack(false), abandonedGraceMs).unref();
    };
    const forget = [onAbort(signal, abandon), onAbort(this.#closed.signal, abandon)];
    try {
      await this.#check(connection);
      const result = await work(connection);
      giveBack(true);
      return result;
    } catch (error) {
      const failure = backendErrorOf(error);
      // Where the state of the connection is in doubt it serves nobody else.
      giveBack(failure.backendCode !== 'unavailable');
      throw failure;
    } finally {
      clearTimeout(timer);
      for (const one of forget) one();
    }
  }

  /** Once, since all connections of a pool are made alike. */
  async #check(connection: MysqlConnection): Promise<void> {
    if (this.#isChecked) return;
    const rows = await send(connection, 'SELECT @@autocommit AS is_on');
    const [row] = rows as readonly { readonly is_on?: unknown }[];
    if (Number(row?.is_on) === 0) throw new BackendError('mysql', 'misconfigured', noAutocommit);
    this.#isChecked = true;
  }
}

/** A statement that is a transaction of its own, done again when the database rolled it back in favour of others. */
export async function send(connection: MysqlConnection, sql: string): Promise<unknown> {
  for (let attempt = 0; ; attempt++) {
    try {
      return (await connection.query(sql))[0];
    } catch (error) {
      if (!isRolledBack(error) || attempt >= deadlockRetriesMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.random() * retryPauseMs * (attempt + 1)));
    }
  }
}
