import { UsageError } from '../errors/usage-error.ts';

/** The fields that the backend uses of a result of `pg`. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** The methods that the backend uses of a pooled client. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  /** With an error the connection is closed instead of reused. */
  release(error?: Error | boolean): void;
}

/** A `Pool` of `pg`, or a compatible object. It may connect through a transaction-pooling proxy. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
}

/** A `Client` of `pg` on a direct connection: LISTEN does not work through a transaction-pooling proxy. */
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
  // A single client has `processID` or `release`, and its connect() returns no pooled client.
  if (!isPool || 'processID' in given || 'release' in given) {
    throw new UsageError('the option pool is not a Pool of pg: create one with new Pool({ connectionString })');
  }
}
