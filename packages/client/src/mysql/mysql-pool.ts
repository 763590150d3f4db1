import { UsageError } from '../errors/usage-error.ts';

/** What is used of a connection that a pool lends. */
export interface MysqlConnection {
  /** Gives the rows, or for other statements the counts, and then the columns. */
  query(sql: string): Promise<readonly [unknown, unknown]>;
  release(): void;
  destroy(): void;
}

/** A pool of `mysql2/promise`. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>;
}

export function requirePool(pool: unknown): asserts pool is MysqlPool {
  const given = (typeof pool === 'object' ? pool : undefined) as Readonly<Record<string, unknown>> | null | undefined;
  // A pool of callbacks has a method that makes one of promises of it.
  if (typeof given?.['getConnection'] !== 'function' || typeof given['promise'] === 'function') {
    throw new UsageError('the option pool is no pool of mysql2/promise: make one with its createPool({ uri })');
  }
}
