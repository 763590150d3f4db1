import { UsageError } from '../errors/usage-error.ts';

/** The methods that the backend uses of a prepared statement. */
export interface SqliteStatement {
  all(...values: (string | number)[]): unknown[];
  run(...values: (string | number)[]): unknown;
}

/** The common part of libsql, better-sqlite3 and node:sqlite: a synchronous connection. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}

export function requireDatabase(database: unknown): asserts database is SqliteDatabase {
  const given = database as Partial<SqliteDatabase> | null | undefined;
  if (typeof given?.exec === 'function' && typeof given.prepare === 'function') return;
  throw new UsageError('the option database is not a connection of libsql, better-sqlite3 or node:sqlite');
}
