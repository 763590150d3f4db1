import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import type { PostgresHost } from './postgres-address.ts';
import type { PostgresTiming } from './postgres-timing.ts';

const keepAliveDelayMs = 5_000;

const askIdentity = `SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS standby,
  current_setting('transaction_read_only') AS read_only`;

type Row = Readonly<Record<string, unknown>>;

export interface SessionQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** Prepared once under this name in the session. */
  readonly name?: string;
  /** 0 for a query that may wait for as long as the database wants. */
  readonly timeoutMs?: number;
}

/** A backend process of the database, told apart from a later one that has its process id. */
export interface Backend {
  readonly pid: number;
  readonly applicationName: string;
}

/**
 * One connection to one host. Once it is lost it stays lost: each query on it rejects, and `whenLost` has told. Queries
 * that are asked for at once run one after the other.
 */
export class PostgresSession {
  readonly host: string;
  readonly #client: Client;
  readonly #applicationName: string;
  readonly #queryTimeoutMs: number;
  #pid = 0;
  #warning: string | undefined;
  #lostBecause: Error | undefined;
  #whenLost: (() => void)[] = [];
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(host: string, client: Client, applicationName: string, queryTimeoutMs: number) {
    this.host = host;
    this.#queryTimeoutMs = queryTimeoutMs;
    this.#client = client;
    this.#applicationName = applicationName;
    // What ends a connection is an event of the client whether a query is out or not.
    client.on('error', (error) => this.#lost(error));
    client.on('end', () => this.#lost(new Error('the connection has ended')));
    client.on('notice', (notice) => (this.#warning = notice.message ?? 'a warning without words'));
  }

  /** Connects, or rejects with the error of the network or of the database, or because the host takes no writes. */
  static async connectToPrimary(
    host: PostgresHost,
    { connectTimeoutMs, queryTimeoutMs }: PostgresTiming,
    purpose: string,
    signal: AbortSignal,
  ): Promise<PostgresSession> {
    const applicationName = `tenure ${purpose} ${randomBytes(6).toString('hex')}`;
    const client = new Client({
      connectionString: host.url,
      application_name: applicationName,
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveDelayMs,
    });
    const session = new PostgresSession(host.name, client, applicationName, queryTimeoutMs);
    const give = (): void => session.destroy(new Error('the connection is no longer needed'));
    signal.addEventListener('abort', give);
    try {
      signal.throwIfAborted();
      await client.connect();
      const [row] = await session.query({ text: askIdentity });
      session.#pid = Number(row?.['pid']);
      if (row?.['standby'] === true) throw new Error('it is a standby, and the log is kept on the primary');
      if (row?.['read_only'] === 'on') throw new Error('it is read-only (default_transaction_read_only)');
      return session;
    } catch (error) {
      session.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    } finally {
      signal.removeEventListener('abort', give);
    }
  }

  get backend(): Backend {
    return { pid: this.#pid, applicationName: this.#applicationName };
  }

  /**
   * Whether a pooler stands between: the key by which a query may be cancelled is then the pooler's own, and does not
   * name the process of the backend.
   */
  get isPooled(): boolean {
    const { processID } = this.#client as Client & { readonly processID: number | null };
    return processID !== this.#pid;
  }

  /** Why nothing is answered any more; undefined while the connection stands, as far as this side knows. */
  get lostBecause(): Error | undefined {
    return this.#lostBecause;
  }

  /** The rows. Rejects with the database's error, or with that of the connection; then the outcome is not known. */
  query(query: SessionQuery): Promise<readonly Row[]> {
    const answer = this.#turn.then(() => this.#query(query));
    this.#turn = answer.catch(() => undefined);
    return answer;
  }

  async #query({ text, values = [], name, timeoutMs = this.#queryTimeoutMs }: SessionQuery): Promise<readonly Row[]> {
    if (this.#lostBecause !== undefined) throw this.#lostBecause;
    const late = (): void => this.destroy(new Error(`${this.host} did not answer within ${timeoutMs} ms`));
    const timer = timeoutMs > 0 ? setTimeout(late, timeoutMs) : undefined;
    try {
      const prepared = name === undefined ? {} : { name };
      const result = await this.#client.query<Row>({ text, values: [...values], ...prepared });
      return result.rows;
    } catch (error) {
      // An orderly error leaves the connection as it is; with a lost one, its own reason says more.
      throw this.#lostBecause ?? error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What was asked and has not left this process. */
  get unsentBytes(): number {
    return this.#client.connection.stream.writableLength;
  }

  /** Called once the connection is lost; at once if it is already. */
  whenLost(told: () => void): void {
    if (this.#lostBecause !== undefined) told();
    else this.#whenLost.push(told);
  }

  onNotification(told: (payload: string) => void): void {
    this.#client.on('notification', ({ payload = '' }) => told(payload));
  }

  /** What the database has warned of since this was last asked, such as a commit that did not wait for its standby. */
  takeWarning(): string | undefined {
    const warning = this.#warning;
    this.#warning = undefined;
    return warning;
  }

  /** Breaks the connection off: what is out on it is not waited for. */
  destroy(reason: Error): void {
    this.#lost(reason);
    this.#client.connection.stream.destroy();
  }

  /** Takes leave once what was asked before has been answered. */
  async end(): Promise<void> {
    await this.#turn;
    if (this.#lostBecause !== undefined) return;
    this.#lostBecause = new Error('the connection was closed');
    this.#whenLost = [];
    const timer = setTimeout(() => this.#client.connection.stream.destroy(), this.#queryTimeoutMs);
    await this.#client.end().finally(() => clearTimeout(timer));
  }

  #lost(reason: Error): void {
    if (this.#lostBecause !== undefined) return;
    this.#lostBecause = reason;
    for (const told of this.#whenLost.splice(0)) told();
  }
}
