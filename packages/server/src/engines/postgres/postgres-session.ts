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
  /** 0 for a query without a timeout. */
  readonly timeoutMs?: number;
}

/** A backend process of the database, distinguished from a later one with the same process id. */
export interface Backend {
  readonly pid: number;
  readonly applicationName: string;
}

/**
 * One connection to one host. A lost session stays lost: each query on it rejects, and `whenLost` has been called.
 * Concurrent queries run one after the other.
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
    // The client reports the end of a connection as an event, with or without a query in progress.
    client.on('error', (error) => this.#lost(error));
    client.on('end', () => this.#lost(new Error('the connection has ended')));
    client.on('notice', (notice) => (this.#warning = notice.message ?? 'a warning without words'));
  }

  /** Connects, or rejects with the error of the network or of the database, or because the host is read-only. */
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
   * Whether a pooler is in between: the key for cancelling a query is then the pooler's own, and does not contain the
   * process id of the backend.
   */
  get isPooled(): boolean {
    const { processID } = this.#client as Client & { readonly processID: number | null };
    return processID !== this.#pid;
  }

  /** Why every query is refused; undefined while the connection is open, as far as this side knows. */
  get lostBecause(): Error | undefined {
    return this.#lostBecause;
  }

  /** The rows. Rejects with the database's error, or with the connection's error; then the outcome is unknown. */
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
      // A regular error leaves the connection open; for a lost one, its own reason says more.
      throw this.#lostBecause ?? error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Queries that have not left this process. */
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

  /** The warnings of the database since the last call, such as a commit that did not wait for its standby. */
  takeWarning(): string | undefined {
    const warning = this.#warning;
    this.#warning = undefined;
    return warning;
  }

  /** Breaks the connection off: queries in progress are not awaited. */
  destroy(reason: Error): void {
    this.#lost(reason);
    this.#client.connection.stream.destroy();
  }

  /** Closes the connection after the pending queries. */
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
