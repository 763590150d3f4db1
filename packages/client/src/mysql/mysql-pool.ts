import { UsageError } from '../errors/usage-error.ts';

/** The methods that the backend uses of a pooled connection. */
export interface MysqlConnection {
  /** Resolves with the rows, or the counts for other statements, followed by the columns. */
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
  // A pool with callbacks has a `promise` method, which returns a pool with promises.
  if (typeof given?.['getConnection'] !== 'function' || typeof given['promise'] === 'function') {
    throw new UsageError('the option pool is not a pool of mysql2/promise: create one with its createPool({ uri })');
  }
}
