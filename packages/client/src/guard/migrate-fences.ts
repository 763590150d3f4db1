import { UsageError } from '../errors/usage-error.ts';
import { defaultFencesTable, mysqlFences, mysqlFencesRepair, postgresFences, sqliteFences } from './fence-schema.ts';
import type { SqlDialect } from './fence-schema.ts';
import { sqlIdentifier } from './sql-identifier.ts';

export interface FenceTableOptions {
  readonly dialect: SqlDialect;
  readonly table?: string;
}

/**
 * Creates the table of tokens of `fenceStatements`, or repairs one of an earlier version of this library, in which
 * names that MySQL treated as equal shared a row, and long names had none. Does nothing on a current table, so every
 * process may call it at startup. `query` runs one statement and returns what the driver returns: `(sql) =>
 * pool.query(sql)` of pg or mysql2, `(sql) => database.exec(sql)` of SQLite.
 */
export async function migrateFences(query: (sql: string) => unknown, options: FenceTableOptions): Promise<void> {
  const table = sqlIdentifier(options.table ?? defaultFencesTable);
  switch (options.dialect) {
    case 'postgres':
      await query(postgresFences(table));
      return;
    case 'sqlite':
      await query(sqliteFences(table));
      return;
    case 'mysql':
      await migrateMysql(query, table);
      return;
    default:
      throw new UsageError(`the dialect must be postgres, mysql or sqlite, not ${String(options.dialect)}`);
  }
}

async function migrateMysql(query: (sql: string) => unknown, table: string): Promise<void> {
  const parts = table.split('.');
  const schema = parts.length > 1 ? `'${parts.at(-2)}'` : 'DATABASE()';
  // Checked first, because both statements below need rights that the process may no longer have.
  const rows = rowsOf(
    await query(`SELECT COUNT(*) AS found, COUNT(CASE WHEN data_type = 'varbinary' THEN 1 END) AS as_bytes
FROM information_schema.columns
WHERE table_schema = ${schema} AND table_name = '${parts.at(-1)}' AND column_name = 'resource'`),
  );
  const found = Number(rows[0]?.['found']);
  if (Number(rows[0]?.['as_bytes']) > 0) return;
  for (const statement of found > 0 ? mysqlFencesRepair(table) : [mysqlFences(table)]) await query(statement);
}

/** mysql2 returns the rows and then the columns; wrappers often return only the rows. */
function rowsOf(result: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (!Array.isArray(result)) throw new UsageError('query must return what mysql2 returns: (sql) => pool.query(sql)');
  return (Array.isArray(result[0]) ? result[0] : result) as Record<string, unknown>[];
}
