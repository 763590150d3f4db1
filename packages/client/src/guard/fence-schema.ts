export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

export const defaultFencesTable = 'tenure_fences';
/** As long as the longest name that a backend knows. */
export const maxResourceBytes = 512;

/** Many who migrate at once take turns: IF NOT EXISTS alone fails when two find nothing. */
const migrationLock = '7523014692817723002';

/**
 * One statement, which does nothing when the table is there and right, so that the rights to create and to alter are
 * needed once only. Before, the column was one of 255 characters, and compared as the database compares by default.
 */
export function postgresFences(table: string): string {
  return `DO $fences$ BEGIN
  PERFORM pg_advisory_xact_lock(${migrationLock});
  IF to_regclass('${table}') IS NULL THEN
    CREATE TABLE IF NOT EXISTS ${table} (resource text COLLATE "C" NOT NULL PRIMARY KEY, token bigint NOT NULL);
  END IF;
  IF EXISTS (
    SELECT FROM pg_catalog.pg_attribute AS a LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = a.attcollation
    WHERE a.attrelid = to_regclass('${table}') AND a.attname = 'resource'
      AND (a.atttypid <> 'text'::regtype OR c.collname <> 'C')
  ) THEN
    ALTER TABLE ${table} ALTER COLUMN resource TYPE text COLLATE "C";
  END IF;
END $fences$`;
}

/** SQLite keeps texts of any length whatever its column is called, and compares their bytes. */
export function sqliteFences(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (resource TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL)`;
}

/** Names are kept as their bytes in UTF-8: MySQL's collations take letters and names for equal that are not. */
export function mysqlFences(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  resource VARBINARY(${maxResourceBytes}) NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL
) ENGINE = InnoDB`;
}

/**
 * For a table whose names are text: first in UTF-8, in a collation that lets all be told apart that could be before,
 * then as bytes. On a table that is right each of them does nothing, so many may do this at once.
 */
export function mysqlFencesRepair(table: string): readonly string[] {
  return [
    `ALTER TABLE ${table} CONVERT TO CHARACTER SET utf8mb4
  /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */`,
    `ALTER TABLE ${table} MODIFY resource VARBINARY(${maxResourceBytes}) NOT NULL`,
  ];
}
