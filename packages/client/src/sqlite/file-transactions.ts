import { BackendError } from '../errors/backend-error.ts';
import { abortable } from '../time/abortable.ts';
import type { Signal } from '../time/signal.ts';
import { backendErrorOf, isBusy } from './backend-error-of.ts';
import type { SqliteDatabase, SqliteStatement } from './sqlite-database.ts';

const busyPauseMs = 8;
/** Short, because SQLite's own waiting blocks the event loop. */
const busyTimeoutMs = 10;

export type Row = Readonly<Record<string, unknown>>;

/** Runs work in transactions, each of which begins and ends within one turn of the event loop. */
export class FileTransactions {
  readonly #database: SqliteDatabase;
  readonly #lockedAtMostMs: number;
  readonly #statements = new Map<string, SqliteStatement>();
  #isSetUp = false;
  #isClosed = false;

  /** A call waits up to `lockedAtMostMs` for writers in other processes before it fails as `unavailable`. */
  constructor(database: SqliteDatabase, lockedAtMostMs: number) {
    this.#database = database;
    this.#lockedAtMostMs = lockedAtMostMs;
  }

  close(): void {
    this.#isClosed = true;
    this.#statements.clear();
  }

  /** Runs `work` as the only writer. After a busy error it is rolled back and called again. */
  write<T>(signal: Signal, work: () => T): Promise<T> {
    return this.#whenFree(signal, () => {
      this.#database.exec('BEGIN IMMEDIATE');
      try {
        const result = work();
        this.#database.exec('COMMIT');
        return result;
      } catch (error) {
        this.#rollBack();
        throw error;
      }
    });
  }

  /** For `work` of one statement, which needs no transaction. */
  read<T>(signal: Signal, work: () => T): Promise<T> {
    return this.#whenFree(signal, work);
  }

  all(sql: string, ...values: (string | number)[]): readonly Row[] {
    requireWholeTexts(values);
    return this.#prepared(sql).all(...values) as readonly Row[];
  }

  run(sql: string, ...values: (string | number)[]): void {
    requireWholeTexts(values);
    this.#prepared(sql).run(...values);
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  async #whenFree<T>(signal: Signal, work: () => T): Promise<T> {
    const untilMs = performance.now() + this.#lockedAtMostMs;
    for (;;) {
      signal.throwIfAborted();
      if (this.#isClosed) throw new BackendError('sqlite', 'closed', 'the backend has been closed');
      try {
        this.#setUp();
        return work();
      } catch (error) {
        if (!isBusy(error)) throw backendErrorOf(error);
        if (performance.now() > untilMs) {
          const words = `another connection has kept the file locked for ${this.#lockedAtMostMs} ms`;
          throw new BackendError('sqlite', 'unavailable', words, { cause: error });
        }
      }
      // Random, so that two processes that collide do not collide again.
      const pauseMs = Math.random() * busyPauseMs;
      await abortable(new Promise<void>((resolve) => setTimeout(resolve, pauseMs)), signal);
    }
  }

  #setUp(): void {
    if (this.#isSetUp) return;
    // Not every driver allows a statement that returns a row in exec().
    this.#database.prepare(`PRAGMA busy_timeout = ${busyTimeoutMs}`).all();
    this.#isSetUp = true;
  }

  #rollBack(): void {
    try {
      this.#database.exec('ROLLBACK');
    } catch {
      // Some errors have ended the transaction already.
    }
  }

  #prepared(sql: string): SqliteStatement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

/** Some drivers truncate text at its first null character, which would make two names equal. */
function requireWholeTexts(values: readonly (string | number)[]): void {
  if (values.some((value) => typeof value === 'string' && value.includes('\0'))) {
    throw new BackendError('sqlite', 'refused', 'text with a null character cannot be stored');
  }
}
