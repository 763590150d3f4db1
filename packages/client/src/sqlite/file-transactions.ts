import { BackendError } from '../errors/backend-error.ts';
import { abortable } from '../time/abortable.ts';
import type { Signal } from '../time/signal.ts';
import { backendErrorOf, isBusy } from './backend-error-of.ts';
import type { SqliteDatabase, SqliteStatement } from './sqlite-database.ts';

const busyPauseMs = 8;
/** SQLite itself waits no longer: nothing else runs in this process meanwhile. */
const busyTimeoutMs = 10;

export type Row = Readonly<Record<string, unknown>>;

/** Runs work in transactions, each of which begins and ends within one turn of the event loop. */
export class FileTransactions {
  readonly #database: SqliteDatabase;
  readonly #lockedAtMostMs: number;
  readonly #statements = new Map<string, SqliteStatement>();
  #isSetUp = false;
  #isClosed = false;

  /** A call waits so long for other processes that write, before it fails as unavailable. */
  constructor(database: SqliteDatabase, lockedAtMostMs: number) {
    this.#database = database;
    this.#lockedAtMostMs = lockedAtMostMs;
  }

  close(): void {
    this.#isClosed = true;
    this.#statements.clear();
  }

  /** Nobody else writes while it runs. Waits its turn; `work` may therefore be called more than once, and is undone. */
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

  /** What one statement sees. */
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
      // Drawn at random, so that two that meet do not meet again.
      const pauseMs = Math.random() * busyPauseMs;
      await abortable(new Promise<void>((resolve) => setTimeout(resolve, pauseMs)), signal);
    }
  }

  #setUp(): void {
    if (this.#isSetUp) return;
    // A statement that gives a row is not for exec() with every driver.
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

/** Some drivers cut a text off at its first character 0, and two names would be one. */
function requireWholeTexts(values: readonly (string | number)[]): void {
  if (values.some((value) => typeof value === 'string' && value.includes('\0'))) {
    throw new BackendError('sqlite', 'refused', 'a text with the character 0 cannot be kept');
  }
}
