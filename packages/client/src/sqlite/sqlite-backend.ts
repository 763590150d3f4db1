import { QueueWatches } from '../backend/queue-watches.ts';
import { queuePosition } from '../backend/queue-position.ts';
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
import { UsageError } from '../errors/usage-error.ts';
import type { Signal } from '../time/signal.ts';
import { FileTransactions } from './file-transactions.ts';
import type { Row } from './file-transactions.ts';
import { leaseSchemaSql } from './lease-schema.ts';
import { requireDatabase } from './sqlite-database.ts';
import type { SqliteDatabase } from './sqlite-database.ts';

const year = 366 * 24 * 3_600_000;
/** Short, because a read takes microseconds and changes of other processes are found only by polling. */
const defaultPollIntervalMs = 200;
const defaultLockedAtMostMs = 5_000;

/**
 * The machine's clock in whole milliseconds since 1970, read by SQLite, so that all processes use the same one. SQLite
 * counts days in a double, so the value is rounded: truncating would make about half of the readings one millisecond
 * too early.
 */
const nowMs = `CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)`;

const sql = {
  list: `SELECT name, id, CAST(ticket AS TEXT) AS ticket, holder, mode, permits, ttl_ms, data,
    expires_at_ms - ${nowMs} AS left_ms FROM tenure_entries AS e WHERE name = ? ORDER BY e.ticket`,
  sweep: `DELETE FROM tenure_entries WHERE name = ? AND expires_at_ms <= ${nowMs}`,
  nextSequence: `INSERT INTO tenure_lines (name, last_ticket) VALUES (?, 1)
    ON CONFLICT (name) DO UPDATE SET last_ticket = last_ticket + 1 RETURNING CAST(last_ticket AS TEXT) AS ticket`,
  // One more, because a clock in whole milliseconds may be almost one behind, and no entry may expire early.
  enter: `INSERT INTO tenure_entries (name, ticket, id, holder, mode, permits, ttl_ms, data, expires_at_ms)
    VALUES (?, CAST(? AS INTEGER), ?, ?, ?, ?, ?, ?, ${nowMs} + ? + 1)`,
  renew: `UPDATE tenure_entries SET ttl_ms = ?, expires_at_ms = ${nowMs} + ? + 1
    WHERE name = ? AND id = ? AND ticket = CAST(? AS INTEGER) AND expires_at_ms > ${nowMs} RETURNING 1 AS done`,
  leave: `DELETE FROM tenure_entries WHERE name = ? AND id = ? AND (? = '0' OR ticket = CAST(? AS INTEGER))
    RETURNING expires_at_ms > ${nowMs} AS lived`,
  update: `UPDATE tenure_entries SET data = ?
    WHERE name = ? AND id = ? AND ticket = CAST(? AS INTEGER) AND expires_at_ms > ${nowMs} RETURNING 1 AS done`,
};

export interface SqliteBackendOptions {
  /**
   * A connection of libsql, better-sqlite3 or node:sqlite for the backend alone: it sets the busy timeout and opens
   * transactions. The caller closes it after the backend.
   */
  readonly database: SqliteDatabase;
  /** The longest time between two reads of a waiter; 200 by default. */
  readonly pollIntervalMs?: number;
  /** A call fails as `unavailable` when other connections have kept the file locked this long; 5000 by default. */
  readonly lockedAtMostMs?: number;
}

export interface SqliteBackend extends LeaseBackend {
  /** Creates the tables unless they exist. Every process may call it at startup. */
  migrate(): Promise<void>;
}

/** Leases in a SQLite file, for the processes of one machine, by the machine's clock. */
export function sqliteBackend(options: SqliteBackendOptions): SqliteBackend {
  requireDatabase(options.database);
  const { pollIntervalMs = defaultPollIntervalMs, lockedAtMostMs = defaultLockedAtMostMs } = options;
  for (const [name, ms] of Object.entries({ pollIntervalMs, lockedAtMostMs })) {
    if (!(ms > 0 && Number.isFinite(ms))) {
      throw new UsageError(`${name} is a number of milliseconds greater than 0, not ${ms}`);
    }
  }
  return new SqliteFileBackend(options.database, { pollIntervalMs, lockedAtMostMs });
}

class SqliteFileBackend implements SqliteBackend {
  readonly kind = 'sqlite';
  readonly limits: BackendLimits = {
    minTtlMs: 1,
    maxTtlMs: 10 * year,
    maxNameBytes: 512,
    maxDataBytes: 64 * 1024,
  };
  readonly pollIntervalMs: number;
  readonly #file: FileTransactions;
  /** Hints of this backend's own changes. Changes of other processes are found by polling. */
  readonly #watches = new QueueWatches();

  constructor(
    database: SqliteDatabase,
    { pollIntervalMs, lockedAtMostMs }: Record<'pollIntervalMs' | 'lockedAtMostMs', number>,
  ) {
    this.#file = new FileTransactions(database, lockedAtMostMs);
    this.pollIntervalMs = pollIntervalMs;
  }

  async migrate(): Promise<void> {
    await this.#file.write(new AbortController().signal, () => this.#file.exec(leaseSchemaSql));
  }

  async enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    const entered = await this.#file.write(signal, () => this.#enterNow(claim, onlyIfHolds));
    this.#watches.hint(claim.name);
    return entered;
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    // Writers take turns and readers do not, so it writes only if there is an expired entry to remove.
    const queue = await this.#file.read(signal, () => this.#queue(name));
    if (queue.every(isAlive)) return queue.map(entryOf);
    return this.#file.write(signal, () => this.#sweptQueue(name));
  }

  async renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    if (renewals.length === 0) return [];
    return this.#file.write(signal, () =>
      renewals.map(({ name, id, sequence, ttlMs }) => {
        const ms = Math.ceil(ttlMs);
        return this.#file.all(sql.renew, ms, ms, name, id, `${sequence}`).length > 0;
      }),
    );
  }

  async leave({ name, id, sequence }: EntryKey, signal: Signal): Promise<boolean> {
    const ended = await this.#file.write(signal, () =>
      this.#file.all(sql.leave, name, id, `${sequence}`, `${sequence}`),
    );
    if (ended.length > 0) this.#watches.hint(name);
    return ended.some((row) => Number(row['lived']) === 1);
  }

  async update({ name, id, sequence }: EntryKey, data: string, signal: Signal): Promise<boolean> {
    const rows = await this.#file.write(signal, () => this.#file.all(sql.update, data, name, id, `${sequence}`));
    if (rows.length > 0) this.#watches.hint(name);
    return rows.length > 0;
  }

  watch(name: string, onChange: () => void): QueueWatch {
    return this.#watches.add(name, onChange);
  }

  async close(): Promise<void> {
    this.#file.close();
    this.#watches.clear();
  }

  #enterNow(claim: Claim, onlyIfHolds: boolean): Entered {
    const { name, id, holder, mode, permits, data } = claim;
    const queue = this.#sweptQueue(name);
    const last = queue.at(-1)?.sequence ?? 0n;
    if (onlyIfHolds && !queuePosition(queue, { ...claim, sequence: last + 1n }).holds) {
      return { sequence: undefined, entries: queue };
    }
    const ttlMs = Math.ceil(claim.ttlMs);
    const sequence = String(this.#file.all(sql.nextSequence, name)[0]?.['ticket']);
    this.#file.run(sql.enter, name, sequence, id, holder, mode, permits, ttlMs, data, ttlMs);
    return { sequence: BigInt(sequence), entries: this.#queue(name).map(entryOf) };
  }

  #sweptQueue(name: string): readonly Entry[] {
    this.#file.run(sql.sweep, name);
    return this.#queue(name).map(entryOf);
  }

  #queue(name: string): readonly Row[] {
    return this.#file.all(sql.list, name);
  }
}

function isAlive(row: Row): boolean {
  return Number(row['left_ms']) > 0;
}

function entryOf(row: Row): Entry {
  return {
    name: String(row['name']),
    id: String(row['id']),
    sequence: BigInt(String(row['ticket'])),
    holder: String(row['holder']),
    mode: row['mode'] as EntryMode,
    permits: Number(row['permits']),
    ttlMs: Number(row['ttl_ms']),
    data: String(row['data']),
    // An entry that expired during this call is still returned, and soon read again.
    expiresInMs: Math.max(1, Number(row['left_ms'])),
  };
}
