import { LineWatches } from '../backend/line-watches.ts';
import { standing } from '../backend/standing.ts';
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
import { UsageError } from '../errors/usage-error.ts';
import type { Signal } from '../time/signal.ts';
import { FileTransactions } from './file-transactions.ts';
import type { Row } from './file-transactions.ts';
import { lineSchemaSql } from './line-schema.ts';
import { requireDatabase } from './sqlite-database.ts';
import type { SqliteDatabase } from './sqlite-database.ts';

const year = 366 * 24 * 3_600_000;
/** Reading a line takes some microseconds, and nothing tells of what another process did. */
const defaultPollIntervalMs = 200;
const defaultLockedAtMostMs = 5_000;

/**
 * The machine's clock, in whole milliseconds since 1970, read by SQLite, so that all processes have the same. Days are
 * a double there, hence the rounding: cutting off would make every other reading a millisecond too early.
 */
const nowMs = `CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)`;

const sql = {
  list: `SELECT name, id, CAST(ticket AS TEXT) AS ticket, holder, mode, permits, ttl_ms, data,
    expires_at_ms - ${nowMs} AS left_ms FROM tenure_entries AS e WHERE name = ? ORDER BY e.ticket`,
  sweep: `DELETE FROM tenure_entries WHERE name = ? AND expires_at_ms <= ${nowMs}`,
  nextTicket: `INSERT INTO tenure_lines (name, last_ticket) VALUES (?, 1)
    ON CONFLICT (name) DO UPDATE SET last_ticket = last_ticket + 1 RETURNING CAST(last_ticket AS TEXT) AS ticket`,
  // A clock in whole milliseconds may be almost one behind: one more, so that no life is over early.
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
   * A connection of libsql, better-sqlite3 or node:sqlite that nothing else uses: the backend sets its busy timeout and
   * opens transactions on it. It stays the caller's, who closes it after the backend.
   */
  readonly database: SqliteDatabase;
  /** Waiters look again after so long at the latest: 200. */
  readonly pollIntervalMs?: number;
  /** A call fails as unavailable when other connections have kept the file locked for so long: 5000. */
  readonly lockedAtMostMs?: number;
}

export interface SqliteBackend extends LeaseBackend {
  /** Makes the tables, where there are none. Every process may call it at its start. */
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
  return new LineFile(options.database, { pollIntervalMs, lockedAtMostMs });
}

class LineFile implements SqliteBackend {
  readonly kind = 'sqlite';
  readonly limits: BackendLimits = {
    minTtlMs: 1,
    maxTtlMs: 10 * year,
    maxNameBytes: 512,
    maxDataBytes: 64 * 1024,
  };
  readonly pollIntervalMs: number;
  readonly #file: FileTransactions;
  /** They are told of what this backend does. Other processes are seen by polling. */
  readonly #watches = new LineWatches();

  constructor(
    database: SqliteDatabase,
    { pollIntervalMs, lockedAtMostMs }: Record<'pollIntervalMs' | 'lockedAtMostMs', number>,
  ) {
    this.#file = new FileTransactions(database, lockedAtMostMs);
    this.pollIntervalMs = pollIntervalMs;
  }

  async migrate(): Promise<void> {
    await this.#file.write(new AbortController().signal, () => this.#file.exec(lineSchemaSql));
  }

  async enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    const entered = await this.#file.write(signal, () => this.#enterNow(claim, onlyIfHolds));
    this.#watches.hint(claim.name);
    return entered;
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    // Writing takes turns and reading does not, so it writes only when there is something to remove.
    const line = await this.#file.read(signal, () => this.#line(name));
    if (line.every(isAlive)) return line.map(entryOf);
    return this.#file.write(signal, () => this.#sweptLine(name));
  }

  async renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    if (renewals.length === 0) return [];
    return this.#file.write(signal, () =>
      renewals.map(({ name, id, ticket, ttlMs }) => {
        const ms = Math.ceil(ttlMs);
        return this.#file.all(sql.renew, ms, ms, name, id, `${ticket}`).length > 0;
      }),
    );
  }

  async leave({ name, id, ticket }: EntryKey, signal: Signal): Promise<boolean> {
    const ended = await this.#file.write(signal, () => this.#file.all(sql.leave, name, id, `${ticket}`, `${ticket}`));
    if (ended.length > 0) this.#watches.hint(name);
    return ended.some((row) => Number(row['lived']) === 1);
  }

  async update({ name, id, ticket }: EntryKey, data: string, signal: Signal): Promise<boolean> {
    const rows = await this.#file.write(signal, () => this.#file.all(sql.update, data, name, id, `${ticket}`));
    if (rows.length > 0) this.#watches.hint(name);
    return rows.length > 0;
  }

  watch(name: string, onChange: () => void): LineWatch {
    return this.#watches.add(name, onChange);
  }

  async close(): Promise<void> {
    this.#file.close();
    this.#watches.clear();
  }

  #enterNow(claim: Claim, onlyIfHolds: boolean): Entered {
    const { name, id, holder, mode, permits, data } = claim;
    const line = this.#sweptLine(name);
    const last = line.at(-1)?.ticket ?? 0n;
    if (onlyIfHolds && !standing(line, { ...claim, ticket: last + 1n }).holds) {
      return { ticket: undefined, entries: line };
    }
    const ttlMs = Math.ceil(claim.ttlMs);
    const ticket = String(this.#file.all(sql.nextTicket, name)[0]?.['ticket']);
    this.#file.run(sql.enter, name, ticket, id, holder, mode, permits, ttlMs, data, ttlMs);
    return { ticket: BigInt(ticket), entries: this.#line(name).map(entryOf) };
  }

  #sweptLine(name: string): readonly Entry[] {
    this.#file.run(sql.sweep, name);
    return this.#line(name).map(entryOf);
  }

  #line(name: string): readonly Row[] {
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
    ticket: BigInt(String(row['ticket'])),
    holder: String(row['holder']),
    mode: row['mode'] as EntryMode,
    permits: Number(row['permits']),
    ttlMs: Number(row['ttl_ms']),
    data: String(row['data']),
    // One that ended within this very call is still shown, and soon looked at again.
    expiresInMs: Math.max(1, Number(row['left_ms'])),
  };
}
