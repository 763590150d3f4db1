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
  /** Makes the row of the resource unless it is there. Run it before the transaction, or first in it. */
  readonly ensure: SqlStatement;
  /**
   * Run it in the transaction of the write, before the write: it must affect one row. None means that a newer token was
   * here; roll back then. The row stays locked until the transaction ends, so no other guarded write comes between.
   */
  readonly check: SqlStatement;
}

export interface FenceStatementsOptions extends FenceTableOptions {
  /** What is guarded, if that is not just what the lease is named after: up to 512 bytes in UTF-8. */
  readonly resource?: string;
}

/**
 * For writes to many rows, or to tables that can't have a column for the token: a table of tokens by resource, which
 * `migrateFences` makes. Resources are told apart by their bytes. Throws a UsageError for one that can't be kept.
 */
export function fenceStatements(
  hold: Pick<Hold, 'name' | 'fencingToken'>,
  options: FenceStatementsOptions,
): FenceStatements {
  const { dialect } = options;
  const table = sqlIdentifier(options.table ?? defaultFencesTable);
  const resource = checked(options.resource ?? hold.name);
  const token = `${hold.fencingToken}`;
  // To MySQL as digits, so that no character set of a connection or a table changes what is meant.
  const value = dialect === 'mysql' ? Buffer.from(resource, 'utf8').toString('hex') : resource;
  const place = { postgres: '$1', sqlite: '?', mysql: 'UNHEX(?)' }[dialect];
  const insert = `INTO ${table} (resource, token) VALUES (${place}, 0)`;
  const ensure = {
    postgres: `INSERT ${insert} ON CONFLICT (resource) DO NOTHING`,
    sqlite: `INSERT OR IGNORE ${insert}`,
    // IGNORE would hide that a name was cut.
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
