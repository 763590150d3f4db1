import type { Hold } from '../leases/hold.ts';
import { sqlIdentifier } from './sql-identifier.ts';

export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

export interface SqlStatement {
  readonly text: string;
  readonly values: readonly string[];
}

export interface FenceStatements {
  /** Makes the table, once. */
  readonly schema: string;
  /** Makes the row of the resource unless it is there. Run it before the transaction, or first in it. */
  readonly ensure: SqlStatement;
  /**
   * Run it in the transaction of the write, before the write: it must affect one row. None means that a newer token was
   * here; roll back then. The row stays locked until the transaction ends, so no other guarded write comes between.
   */
  readonly check: SqlStatement;
}

export interface FenceStatementsOptions {
  readonly dialect: SqlDialect;
  /** What is guarded, if that is not just what the lease is named after. */
  readonly resource?: string;
  readonly table?: string;
}

/** For writes to many rows, or to tables that can't have a column for the token: a table of tokens by resource. */
export function fenceStatements(
  hold: Pick<Hold, 'name' | 'fencingToken'>,
  options: FenceStatementsOptions,
): FenceStatements {
  const table = sqlIdentifier(options.table ?? 'tenure_fences');
  const resource = options.resource ?? hold.name;
  const token = `${hold.fencingToken}`;
  const first = options.dialect === 'postgres' ? '$1' : '?';
  const insert = `(resource, token) VALUES (${first}, 0)`;
  const ensure = {
    postgres: `INSERT INTO ${table} ${insert} ON CONFLICT (resource) DO NOTHING`,
    sqlite: `INSERT OR IGNORE INTO ${table} ${insert}`,
    mysql: `INSERT IGNORE INTO ${table} ${insert}`,
  };
  return {
    schema: `CREATE TABLE IF NOT EXISTS ${table} (resource varchar(255) NOT NULL PRIMARY KEY, token bigint NOT NULL)`,
    ensure: { text: ensure[options.dialect], values: [resource] },
    check: {
      text: `UPDATE ${table} SET token = ${token} WHERE resource = ${first} AND token <= ${token}`,
      values: [resource],
    },
  };
}
