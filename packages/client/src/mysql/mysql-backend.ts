import { Buffer } from 'node:buffer';
import { QueueWatches } from '../backend/queue-watches.ts';
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
import type { Signal } from '../time/signal.ts';
import { leaseSchemaStatements, schemaVersion } from './lease-schema.ts';
import { requirePool } from './mysql-pool.ts';
import type { MysqlConnection, MysqlPool } from './mysql-pool.ts';
import { sqlText } from './sql-text.ts';
import { send, StatementRunner } from './statement-runner.ts';

const year = 366 * 24 * 3_600_000;
const defaultPollIntervalMs = 1_000;
/** How long a migration waits for another one. */
const migrationLockSeconds = 60;

type Row = Readonly<Record<string, unknown>>;

export interface MysqlBackendOptions {
  /** A pool of `mysql2/promise` with a database. The backend never ends it. */
  readonly pool: MysqlPool;
  /** The longest time between two reads of a waiter; 1000 by default. */
  readonly pollIntervalMs?: number;
}

export interface MysqlBackend extends LeaseBackend {
  /**
   * Creates the tables and the procedure. Does nothing when they exist, so every process may call it at startup, also
   * concurrently. The rights to create them are needed only once.
   */
  migrate(): Promise<void>;
}

/** Leases in tables of MySQL or MariaDB, by the clock of the database. */
export function mysqlBackend(options: MysqlBackendOptions): MysqlBackend {
  requirePool(options.pool);
  const { pollIntervalMs = defaultPollIntervalMs } = options;
  if (!(pollIntervalMs > 0 && Number.isFinite(pollIntervalMs))) {
    throw new UsageError(`pollIntervalMs is a number of milliseconds greater than 0, not ${pollIntervalMs}`);
  }
  return new MysqlTableBackend(options.pool, pollIntervalMs);
}

class MysqlTableBackend implements MysqlBackend {
  readonly kind = 'mysql';
  readonly limits: BackendLimits = {
    minTtlMs: 1,
    maxTtlMs: 10 * year,
    maxNameBytes: 512,
    maxDataBytes: 64 * 1024,
  };
  readonly pollIntervalMs: number;
  readonly #runner: StatementRunner;
  /** Hints of this backend's own changes. Changes of other processes are found by polling. */
  readonly #watches = new QueueWatches();

  constructor(pool: MysqlPool, pollIntervalMs: number) {
    this.#runner = new StatementRunner(pool);
    this.pollIntervalMs = pollIntervalMs;
  }

  async migrate(): Promise<void> {
    const { signal } = new AbortController();
    if ((await this.#version(signal)) >= schemaVersion) return;
    await this.#runner.withConnection(signal, async (connection) => {
      const lock = `CONCAT('tenure.migrate.', SHA1(DATABASE()))`;
      const [row] = rowsOf(await send(connection, `SELECT GET_LOCK(${lock}, ${migrationLockSeconds}) AS locked`));
      if (Number(row?.['locked']) !== 1) {
        throw new BackendError('mysql', 'unavailable', 'another process has been migrating for a minute');
      }
      try {
        if ((await versionSeen(connection)) >= schemaVersion) return;
        for (const statement of leaseSchemaStatements) await send(connection, statement);
      } finally {
        await send(connection, `SELECT RELEASE_LOCK(${lock})`).catch(() => undefined);
      }
    });
  }

  async enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    const { name, id, holder, mode, permits, ttlMs, data } = claim;
    const call = sqlText`CALL tenure_enter(${name}, ${id}, ${holder}, ${mode}, ${permits}, ${Math.ceil(ttlMs)}, ${data},
      ${onlyIfHolds ? 1 : 0})`;
    const results = await this.#runner.withConnection(signal, (connection) => send(connection, call));
    // A procedure returns a list of results, with the counts at the end.
    const rows = rowsOf(Array.isArray(results) ? results[0] : []);
    const sequence = rows[0]?.['own_ticket'];
    if (sequence !== null && sequence !== undefined) this.#watches.hint(name);
    return { sequence: typeof sequence === 'string' ? BigInt(sequence) : undefined, entries: rows.map(entryOf) };
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    return this.#runner.withConnection(signal, async (connection) => {
      const queue = rowsOf(await send(connection, listSql(name)));
      const expired = queue.filter((row) => Number(row['left_us']) <= 0).map((row) => BigInt(String(row['ticket'])));
      if (expired.length === 0) return queue.map(entryOf);
      // By primary key, so that no gap between rows is locked. An entry that was renewed meanwhile is not deleted.
      await send(
        connection,
        `${sqlText`DELETE FROM tenure_entries WHERE name = ${name} AND expires_at <= UTC_TIMESTAMP(6)`}
          AND ticket IN (${expired.join(', ')})`,
      );
      return rowsOf(await send(connection, listSql(name))).map(entryOf);
    });
  }

  async renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    if (renewals.length === 0) return [];
    const asked = renewals
      .map(({ name, id, sequence, ttlMs }) => {
        return sqlText`SELECT ${name} AS name, ${id} AS id, ${sequence} AS ticket, ${Math.ceil(ttlMs)} AS ttl_ms`;
      })
      .join(' UNION ALL ');
    const same = 'e.name = asked.name AND e.ticket = asked.ticket AND e.id = asked.id';
    const update = `UPDATE tenure_entries AS e JOIN (${asked}) AS asked ON ${same}
      SET e.ttl_ms = asked.ttl_ms, e.expires_at = UTC_TIMESTAMP(6) + INTERVAL asked.ttl_ms * 1000 MICROSECOND
      WHERE e.expires_at > UTC_TIMESTAMP(6)`;
    // An entry that had expired for the update has expired for this too, since an expired entry is never renewed.
    const select = `SELECT e.name, e.id, CAST(e.ticket AS CHAR) AS ticket FROM tenure_entries AS e
      JOIN (${asked}) AS asked ON ${same} WHERE e.expires_at > UTC_TIMESTAMP(6)`;
    const rows = await this.#runner.withConnection(signal, async (connection) => {
      await send(connection, update);
      return rowsOf(await send(connection, select));
    });
    const alive = new Set(rows.map((row) => JSON.stringify([textOf(row['name']), textOf(row['id']), row['ticket']])));
    return renewals.map(({ name, id, sequence }) => alive.has(JSON.stringify([name, id, `${sequence}`])));
  }

  async leave({ name, id, sequence }: EntryKey, signal: Signal): Promise<boolean> {
    return this.#change(
      name,
      sqlText`DELETE FROM tenure_entries WHERE name = ${name} AND id = ${id}
        AND (${sequence} = 0 OR ticket = ${sequence}) AND expires_at > UTC_TIMESTAMP(6)`,
      signal,
    );
  }

  async update({ name, id, sequence }: EntryKey, data: string, signal: Signal): Promise<boolean> {
    // An unchanged row may not be counted as affected, so `updates` always changes.
    return this.#change(
      name,
      sqlText`UPDATE tenure_entries SET data = ${data}, updates = updates + 1 WHERE name = ${name} AND id = ${id}
        AND ticket = ${sequence} AND expires_at > UTC_TIMESTAMP(6)`,
      signal,
    );
  }

  watch(name: string, onChange: () => void): QueueWatch {
    return this.#watches.add(name, onChange);
  }

  async close(): Promise<void> {
    this.#runner.close();
    this.#watches.clear();
  }

  async #change(name: string, sql: string, signal: Signal): Promise<boolean> {
    const counts = await this.#runner.withConnection(signal, (connection) => send(connection, sql));
    const isDone = Number((counts as { affectedRows?: unknown }).affectedRows) > 0;
    if (isDone) this.#watches.hint(name);
    return isDone;
  }

  #version(signal: Signal): Promise<number> {
    return this.#runner.withConnection(signal, versionSeen);
  }
}

/** 0 when there are no tables yet. */
async function versionSeen(connection: MysqlConnection): Promise<number> {
  const table = `SELECT 1 FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_name = 'tenure_versions'`;
  if (rowsOf(await send(connection, table)).length === 0) return 0;
  const [row] = rowsOf(await send(connection, 'SELECT MAX(version) AS version FROM tenure_versions'));
  return Number(row?.['version'] ?? 0);
}

function listSql(name: string): string {
  return sqlText`SELECT name, id, CAST(ticket AS CHAR) AS ticket, holder, mode, permits, ttl_ms, data,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS left_us
    FROM tenure_entries AS e WHERE name = ${name} ORDER BY e.ticket`;
}

function rowsOf(result: unknown): readonly Row[] {
  return Array.isArray(result) ? (result as Row[]) : [];
}

function entryOf(row: Row): Entry {
  return {
    name: textOf(row['name']),
    id: textOf(row['id']),
    sequence: BigInt(String(row['ticket'])),
    holder: textOf(row['holder']),
    mode: textOf(row['mode']) as EntryMode,
    permits: Number(row['permits']),
    ttlMs: Number(row['ttl_ms']),
    data: textOf(row['data']),
    // An entry that was renewed just as it expired is soon read again.
    expiresInMs: Math.max(1, Number(row['left_us']) / 1_000),
  };
}

function textOf(value: unknown): string {
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value);
}
