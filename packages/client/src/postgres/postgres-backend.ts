import type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  EntryMode,
  LeaseBackend,
  LineWatch,
  Renewal,
} from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import { UsageError } from '../errors/usage-error.ts';
import { abortable } from '../time/abortable.ts';
import type { Signal } from '../time/signal.ts';
import {
  createSchemaSql,
  defaultSchema,
  inSchema,
  lineSchemaSql,
  migrationLockSql,
  schemaVersion,
} from './line-schema.ts';
import { lineStatements } from './line-statements.ts';
import { NoticeListener } from './notice-listener.ts';
import type { OpenListenClient } from './notice-listener.ts';
import { NoticeSender } from './notice-sender.ts';
import { requirePool } from './postgres-pool.ts';
import type { PostgresPool } from './postgres-pool.ts';
import { StatementRunner } from './statement-runner.ts';

const year = 366 * 24 * 3_600_000;
const pollIntervalMs = 1_000;
/** With hints a poll only makes up for lost ones. */
const pollWhileListeningMs = 5_000;

export interface PostgresBackendOptions {
  /** A `Pool` of `pg`, of the caller's, which the backend never ends. It may go through a transaction-pooling proxy. */
  readonly pool: PostgresPool;
  /**
   * Makes a new, unconnected `Client` of `pg` for a direct connection: `() => new Client({ connectionString })`. With
   * it waiters wake by NOTIFY; without it they poll. The backend connects, reconnects and ends what this makes.
   */
  readonly listen?: OpenListenClient;
  /** Where the tables are: `public` when it is left out. */
  readonly schema?: string;
  /** Waiters look again after so long at the latest: 1000, or 5000 with `listen`. */
  readonly pollIntervalMs?: number;
}

export interface PostgresBackend extends LeaseBackend {
  /**
   * Makes the tables, or brings them up to date. Does nothing when they are, so that every process may call it at its
   * start, also all at once. The rights to create tables are needed for it once only.
   */
  migrate(): Promise<void>;
}

/** Leases in tables of PostgreSQL, by the clock of the database. */
export function postgresBackend(options: PostgresBackendOptions): PostgresBackend {
  requirePool(options.pool);
  const { listen, pollIntervalMs: intervalMs } = options;
  if (listen !== undefined && typeof listen !== 'function') {
    throw new UsageError('the option listen makes a client: () => new Client({ connectionString })');
  }
  if (intervalMs !== undefined && !(intervalMs > 0 && Number.isFinite(intervalMs))) {
    throw new UsageError(`pollIntervalMs is a number of milliseconds greater than 0, not ${intervalMs}`);
  }
  if (options.schema === '') throw new UsageError('the option schema is the name of a schema, not an empty text');
  return new LineTables(options);
}

class LineTables implements PostgresBackend {
  readonly kind = 'postgres';
  readonly limits: BackendLimits = {
    minTtlMs: 1,
    maxTtlMs: 10 * year,
    maxNameBytes: 512,
    maxDataBytes: 64 * 1024,
  };
  readonly pollIntervalMs: number;
  readonly #schema: string;
  readonly #runner: StatementRunner;
  readonly #notices: NoticeSender;
  readonly #listener: NoticeListener | undefined;
  readonly #sql: Readonly<Record<keyof typeof lineStatements, string>>;

  constructor({ pool, listen, schema = defaultSchema, pollIntervalMs: intervalMs }: PostgresBackendOptions) {
    this.pollIntervalMs = intervalMs ?? (listen === undefined ? pollIntervalMs : pollWhileListeningMs);
    this.#schema = schema;
    this.#runner = new StatementRunner(pool);
    this.#notices = new NoticeSender(this.#runner);
    this.#listener = listen === undefined ? undefined : new NoticeListener(listen);
    this.#sql = {
      enter: inSchema(lineStatements.enter, schema),
      list: inSchema(lineStatements.list, schema),
      renew: inSchema(lineStatements.renew, schema),
      leave: inSchema(lineStatements.leave, schema),
      update: inSchema(lineStatements.update, schema),
    };
  }

  async migrate(): Promise<void> {
    const { signal } = new AbortController();
    if ((await this.#version(signal)) >= schemaVersion) return;
    const script = `${migrationLockSql}\n${createSchemaSql(this.#schema)}\n${inSchema(lineSchemaSql, this.#schema)}`;
    await this.#runner.runScript(script, signal);
  }

  async enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    const { name, id, holder, mode, permits, ttlMs, data } = claim;
    const values = [name, id, holder, mode, permits, Math.ceil(ttlMs), data, onlyIfHolds];
    const rows = await this.#runner.run(this.#sql.enter, values, signal);
    const ticket = rows[0]?.['own_ticket'];
    if (typeof ticket === 'string') this.#notices.tellSoon(name);
    return { ticket: typeof ticket === 'string' ? BigInt(ticket) : undefined, entries: rows.map(readEntry) };
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    return (await this.#runner.run(this.#sql.list, [name], signal)).map(readEntry);
  }

  async renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    const columns = [
      renewals.map(({ name }) => name),
      renewals.map(({ id }) => id),
      renewals.map(({ ticket }) => `${ticket}`),
      renewals.map(({ ttlMs }) => Math.ceil(ttlMs)),
    ];
    if (renewals.length === 0) return [];
    const rows = await this.#runner.run(this.#sql.renew, columns, signal);
    const renewed = new Set(rows.map((row) => JSON.stringify([row['name'], row['id'], row['ticket']])));
    return renewals.map(({ name, id, ticket }) => renewed.has(JSON.stringify([name, id, `${ticket}`])));
  }

  async leave({ name, id, ticket }: EntryKey, signal: Signal): Promise<boolean> {
    const rows = await this.#runner.run(this.#sql.leave, [name, id, `${ticket}`], signal);
    // A process may end when it has left, so this notice is waited for; but not by one who waits no longer.
    if (rows.length > 0) await abortable(this.#notices.tell(name), signal).catch(() => undefined);
    return rows.some((row) => row['lived'] === 'true');
  }

  async update({ name, id, ticket }: EntryKey, data: string, signal: Signal): Promise<boolean> {
    const rows = await this.#runner.run(this.#sql.update, [name, id, `${ticket}`, data], signal);
    if (rows.length > 0) this.#notices.tellSoon(name);
    return rows.length > 0;
  }

  watch(name: string, onChange: () => void): LineWatch {
    return this.#listener?.watch(name, onChange) ?? { close: () => undefined };
  }

  async close(): Promise<void> {
    this.#runner.close();
    this.#listener?.close();
  }

  /** 0 when there are no tables yet, or no schema. */
  async #version(signal: Signal): Promise<number> {
    const text = inSchema('SELECT max(version)::text AS version FROM public.tenure_versions', this.#schema);
    try {
      return Number((await this.#runner.run(text, [], signal))[0]?.['version'] ?? 0);
    } catch (error) {
      if (error instanceof BackendError && error.backendCode === 'not-migrated') return 0;
      throw error;
    }
  }
}

function readEntry(row: Readonly<Record<string, unknown>>): Entry {
  return {
    name: String(row['name']),
    id: String(row['id']),
    ticket: BigInt(String(row['ticket'])),
    holder: String(row['holder']),
    mode: row['mode'] as EntryMode,
    permits: Number(row['permits']),
    ttlMs: Number(row['ttl_ms']),
    data: String(row['data']),
    expiresInMs: Number(row['expires_in_ms']),
  };
}
