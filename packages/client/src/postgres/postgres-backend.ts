import type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  EntryMode,
  LeaseBackend,
  QueueWatch,
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
  leaseSchemaSql,
  migrationLockSql,
  schemaVersion,
} from './lease-schema.ts';
import { leaseStatements } from './lease-statements.ts';
import { NotificationListener } from './notification-listener.ts';
import type { OpenListenClient } from './notification-listener.ts';
import { NotificationSender } from './notification-sender.ts';
import { requirePool } from './postgres-pool.ts';
import type { PostgresPool } from './postgres-pool.ts';
import { StatementRunner } from './statement-runner.ts';

const year = 366 * 24 * 3_600_000;
const pollIntervalMs = 1_000;
/** With hints, polling is needed only for lost ones. */
const pollWhileListeningMs = 5_000;

export interface PostgresBackendOptions {
  /** A `Pool` of `pg`. The backend never ends it. It may connect through a transaction-pooling proxy. */
  readonly pool: PostgresPool;
  /**
   * Returns a new, unconnected `Client` of `pg` for a direct connection: `() => new Client({ connectionString })`. With
   * it waiters wake by NOTIFY; without it they poll. The backend connects and ends the clients, and asks for a new one
   * to reconnect.
   */
  readonly listen?: OpenListenClient;
  /** The schema of the tables; `public` by default. */
  readonly schema?: string;
  /** The longest time between two reads of a waiter; 1000 by default, or 5000 with `listen`. */
  readonly pollIntervalMs?: number;
}

export interface PostgresBackend extends LeaseBackend {
  /**
   * Creates the tables, or updates them. Does nothing when they are current, so every process may call it at startup,
   * also concurrently. The rights to create tables are needed only once.
   */
  migrate(): Promise<void>;
}

/** Leases in tables of PostgreSQL, by the clock of the database. */
export function postgresBackend(options: PostgresBackendOptions): PostgresBackend {
  requirePool(options.pool);
  const { listen, pollIntervalMs: intervalMs } = options;
  if (listen !== undefined && typeof listen !== 'function') {
    throw new UsageError(
      'the option listen must be a function that returns a client: () => new Client({ connectionString })',
    );
  }
  if (intervalMs !== undefined && !(intervalMs > 0 && Number.isFinite(intervalMs))) {
    throw new UsageError(`pollIntervalMs is a number of milliseconds greater than 0, not ${intervalMs}`);
  }
  if (options.schema === '') throw new UsageError('the option schema must not be empty');
  return new PostgresTableBackend(options);
}

class PostgresTableBackend implements PostgresBackend {
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
  readonly #notifications: NotificationSender;
  readonly #listener: NotificationListener | undefined;
  readonly #sql: Readonly<Record<keyof typeof leaseStatements, string>>;

  constructor({ pool, listen, schema = defaultSchema, pollIntervalMs: intervalMs }: PostgresBackendOptions) {
    this.pollIntervalMs = intervalMs ?? (listen === undefined ? pollIntervalMs : pollWhileListeningMs);
    this.#schema = schema;
    this.#runner = new StatementRunner(pool);
    this.#notifications = new NotificationSender(this.#runner);
    this.#listener = listen === undefined ? undefined : new NotificationListener(listen);
    this.#sql = {
      enter: inSchema(leaseStatements.enter, schema),
      list: inSchema(leaseStatements.list, schema),
      renew: inSchema(leaseStatements.renew, schema),
      leave: inSchema(leaseStatements.leave, schema),
      update: inSchema(leaseStatements.update, schema),
    };
  }

  async migrate(): Promise<void> {
    const { signal } = new AbortController();
    if ((await this.#version(signal)) >= schemaVersion) return;
    const script = `${migrationLockSql}\n${createSchemaSql(this.#schema)}\n${inSchema(leaseSchemaSql, this.#schema)}`;
    await this.#runner.runScript(script, signal);
  }

  async enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    const { name, id, holder, mode, permits, ttlMs, data } = claim;
    const values = [name, id, holder, mode, permits, Math.ceil(ttlMs), data, onlyIfHolds];
    const rows = await this.#runner.run(this.#sql.enter, values, signal);
    const sequence = rows[0]?.['own_ticket'];
    if (typeof sequence === 'string') this.#notifications.notifySoon(name);
    return { sequence: typeof sequence === 'string' ? BigInt(sequence) : undefined, entries: rows.map(readEntry) };
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    return (await this.#runner.run(this.#sql.list, [name], signal)).map(readEntry);
  }

  async renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    const columns = [
      renewals.map(({ name }) => name),
      renewals.map(({ id }) => id),
      renewals.map(({ sequence }) => `${sequence}`),
      renewals.map(({ ttlMs }) => Math.ceil(ttlMs)),
    ];
    if (renewals.length === 0) return [];
    const rows = await this.#runner.run(this.#sql.renew, columns, signal);
    const renewed = new Set(rows.map((row) => JSON.stringify([row['name'], row['id'], row['ticket']])));
    return renewals.map(({ name, id, sequence }) => renewed.has(JSON.stringify([name, id, `${sequence}`])));
  }

  async leave({ name, id, sequence }: EntryKey, signal: Signal): Promise<boolean> {
    const rows = await this.#runner.run(this.#sql.leave, [name, id, `${sequence}`], signal);
    // Awaited because the process may end after it has left, but not beyond an abort of the caller.
    if (rows.length > 0) await abortable(this.#notifications.notify(name), signal).catch(() => undefined);
    return rows.some((row) => row['lived'] === 'true');
  }

  async update({ name, id, sequence }: EntryKey, data: string, signal: Signal): Promise<boolean> {
    const rows = await this.#runner.run(this.#sql.update, [name, id, `${sequence}`, data], signal);
    if (rows.length > 0) this.#notifications.notifySoon(name);
    return rows.length > 0;
  }

  watch(name: string, onChange: () => void): QueueWatch {
    return this.#listener?.watch(name, onChange) ?? { close: () => undefined };
  }

  async close(): Promise<void> {
    this.#runner.close();
    this.#listener?.close();
  }

  /** 0 when the tables or the schema do not exist yet. */
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
    sequence: BigInt(String(row['ticket'])),
    holder: String(row['holder']),
    mode: row['mode'] as EntryMode,
    permits: Number(row['permits']),
    ttlMs: Number(row['ttl_ms']),
    data: String(row['data']),
    expiresInMs: Number(row['expires_in_ms']),
  };
}
