import { ConnectionLender, retryRolledBack } from '../backend/connection-lender.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Signal } from '../time/signal.ts';
import { backendErrorOf, isRolledBack } from './backend-error-of.ts';
import type { MysqlConnection, MysqlPool } from './mysql-pool.ts';

const noAutocommit = 'the connections of the pool need autocommit = 1: each statement is a transaction of its own';

/** Runs statements on connections of the pool, and returns each connection in a clean state. */
export class StatementRunner {
  readonly #lender: ConnectionLender<MysqlConnection>;
  #isChecked = false;

  constructor(pool: MysqlPool) {
    this.#lender = new ConnectionLender({
      take: () => pool.getConnection(),
      giveBack: (connection, failure) => {
        if (failure === undefined) connection.release();
        else connection.destroy();
      },
      errorOf: backendErrorOf,
      closedError: () => new BackendError('mysql', 'closed', 'the backend has been closed'),
    });
  }

  /** `work` gets one connection for itself. Rejects with a BackendError, or with the reason of the signal. */
  withConnection<T>(signal: Signal, work: (connection: MysqlConnection) => Promise<T>): Promise<T> {
    return this.#lender.lend(signal, async (connection) => {
      await this.#check(connection);
      return await work(connection);
    });
  }

  /** Calls in flight end with a BackendError of code `closed`, and so does every later call. */
  close(): void {
    this.#lender.close();
  }

  /** Once, because all connections of a pool have the same settings. */
  async #check(connection: MysqlConnection): Promise<void> {
    if (this.#isChecked) return;
    const rows = await send(connection, 'SELECT @@autocommit AS is_on');
    const [row] = rows as readonly { readonly is_on?: unknown }[];
    if (Number(row?.is_on) === 0) throw new BackendError('mysql', 'misconfigured', noAutocommit);
    this.#isChecked = true;
  }
}

/** Sends a statement that is its own transaction, again if the database rolled it back because of a conflict. */
export function send(connection: MysqlConnection, sql: string): Promise<unknown> {
  return retryRolledBack(isRolledBack, async () => (await connection.query(sql))[0]);
}
