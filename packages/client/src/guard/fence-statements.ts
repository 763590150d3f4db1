import { Buffer } from 'node:buffer';
import { UsageError } from '../errors/usage-error.ts';
import type { Hold } from '../leases/hold.ts';
import { defaultFencesTable, maxResourceBytes } from './fence-schema.ts';
import type { FenceTableOptions } from './migrate-fences.ts';
import { sqlIdentifier } from './sql-identifier.ts';

export interface SqlStatement {
  readonly text: string;
  readonly values: readonly string[];
}

export interface FenceStatements {
  /** Inserts the row of the resource unless it exists. Run it before the transaction, or first in it. */
  readonly ensure: SqlStatement;
  /**
   * Run it in the transaction of the write, before the write. It must affect one row: none means that a newer token was
   * used, so roll back. The row stays locked until the transaction ends, which keeps other guarded writes out.
   */
  readonly check: SqlStatement;
}

export interface FenceStatementsOptions extends FenceTableOptions {
  /** The guarded resource, up to 512 bytes in UTF-8; by default the name of the lease. */
  readonly resource?: string;
}

/**
 * For writes to many rows, or to tables that can't have a column for the token: statements for a table of tokens by
 * resource, which `migrateFences` creates. Resources are compared by their bytes. Throws a UsageError for an invalid
 * one.
 */
export function fenceStatements(
  hold: Pick<Hold, 'name' | 'fencingToken'>,
  options: FenceStatementsOptions,
): FenceStatements {
  const { dialect } = options;
  const table = sqlIdentifier(options.table ?? defaultFencesTable);
  const resource = checked(options.resource ?? hold.name);
  const token = `${hold.fencingToken}`;
  // Sent to MySQL as hex digits, so that no character set of a connection or table matters.
  const value = dialect === 'mysql' ? Buffer.from(resource, 'utf8').toString('hex') : resource;
  const place = { postgres: '$1', sqlite: '?', mysql: 'UNHEX(?)' }[dialect];
  const insert = `INTO ${table} (resource, token) VALUES (${place}, 0)`;
  const ensure = {
    postgres: `INSERT ${insert} ON CONFLICT (resource) DO NOTHING`,
    sqlite: `INSERT OR IGNORE ${insert}`,
    // IGNORE would hide that a name was truncated.
    mysql: `INSERT ${insert} ON DUPLICATE KEY UPDATE token = token`,
  }[dialect];
  return {
    ensure: { text: ensure, values: [value] },
    check: {
      text: `UPDATE ${table} SET token = ${token} WHERE resource = ${place} AND token <= ${token}`,
      values: [value],
    },
  };
}

function checked(resource: string): string {
  if (typeof resource !== 'string' || resource === '' || /[\0\p{Surrogate}]/u.test(resource)) {
    throw new UsageError('a resource must be well-formed text that is not empty');
  }
  if (Buffer.byteLength(resource) <= maxResourceBytes) return resource;
  throw new UsageError(`a resource must have ${maxResourceBytes} bytes at most: ${resource.slice(0, 50)}...`);
}
