import { ConnectionLender, retryRolledBack } from '../backend/connection-lender.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Signal } from '../time/signal.ts';
import { backendErrorOf, isRolledBack } from './backend-error-of.ts';
import type { PostgresClient, PostgresPool, PostgresResult } from './postgres-pool.ts';

/** After this time the database ends the transaction of a client that was cut off or stopped. */
const idleInTransactionMs = 5_000;

const begin = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL idle_in_transaction_session_timeout = ${idleInTransactionMs}`;

/** Sends each statement on a connection of the pool, possibly a different one each time. */
export class StatementRunner {
  readonly #lender: ConnectionLender<PostgresClient>;

  constructor(pool: PostgresPool) {
    this.#lender = new ConnectionLender({
      take: async () => {
        const client = await pool.connect();
        client.on('error', ignore);
        return client;
      },
      giveBack: (client, failure) => {
        if (failure === undefined) client.removeListener('error', ignore);
        client.release(failure);
      },
      errorOf: backendErrorOf,
      closedError: () => new BackendError('postgres', 'closed', 'the backend has been closed'),
    });
  }

  /** Resolves with the rows. Rejects with a BackendError, or with the reason of the signal. */
  async run(text: string, values: readonly unknown[], signal: Signal): Promise<readonly Record<string, unknown>[]> {
    const { rows } = await this.#lender.lend(signal, (client) => sendUntilDone(client, text, [...values]));
    return rows as readonly Record<string, unknown>[];
  }

  /** Several statements without values, all or none of them. */
  async runScript(text: string, signal: Signal): Promise<void> {
    await this.#lender.lend(signal, (client) => inTransaction(client, () => client.query(text)));
  }

  /** Calls in flight end with a BackendError of code `closed`, and so does every later call. */
  close(): void {
    this.#lender.close();
  }
}

/**
 * Sends a statement as its own transaction. If the default isolation is stricter than READ COMMITTED, the database may
 * roll it back because of a conflict; it is then sent again in a READ COMMITTED transaction.
 */
function sendUntilDone(client: PostgresClient, text: string, values: unknown[]): Promise<PostgresResult> {
  return retryRolledBack(isRolledBack, (tried) => {
    const query = (): Promise<PostgresResult> => client.query(text, values);
    return tried === 0 ? query() : inTransaction(client, query);
  });
}

async function inTransaction<T>(client: PostgresClient, work: () => Promise<T>): Promise<T> {
  await client.query(begin);
  try {
    const result = await work();
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // A connection where even this fails is closed, which ends the transaction too.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** A broken connection fails its statement. Its `error` event needs a listener too, or it would end the process. */
function ignore(): void {}
