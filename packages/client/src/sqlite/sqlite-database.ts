import { UsageError } from '../errors/usage-error.ts';

/** What is used of a prepared statement. */
export interface SqliteStatement {
  all(...values: (string | number)[]): unknown[];
  run(...values: (string | number)[]): unknown;
}

/** What libsql, better-sqlite3 and node:sqlite have in common: a connection whose calls return when they are done. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}

export function requireDatabase(database: unknown): asserts database is SqliteDatabase {
  const given = database as Partial<SqliteDatabase> | null | undefined;
  if (typeof given?.exec === 'function' && typeof given.prepare === 'function') return;
  throw new UsageError('the option database is no connection of libsql, better-sqlite3 or node:sqlite');
}
