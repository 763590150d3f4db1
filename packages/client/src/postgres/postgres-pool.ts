import { UsageError } from '../errors/usage-error.ts';

/** What is used of a result of `pg`. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** What is used of a client that a pool lends. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  /** With an error the connection is closed instead of lent again. */
  release(error?: Error | boolean): void;
}

/** A `Pool` of `pg`, or anything that does the same. It may go through a proxy that pools transactions. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
}

/** A `Client` of `pg` on a direct connection: LISTEN does not work through a proxy that pools transactions. */
export interface PostgresListenClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  on(event: 'notification', listener: (message: { channel: string; payload?: string | undefined }) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  end(): Promise<void>;
}

export function requirePool(pool: unknown): asserts pool is PostgresPool {
  const given = (typeof pool === 'object' ? pool : undefined) as Readonly<Record<string, unknown>> | null | undefined;
  const isPool = typeof given?.['connect'] === 'function' && typeof given['query'] === 'function';
  // A single client has the number of its server process, or a place for it, and its connect() lends nothing.
  if (!isPool || 'processID' in given || 'release' in given) {
    throw new UsageError('the option pool is no Pool of pg: make one with new Pool({ connectionString })');
  }
}
