export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

export const defaultFencesTable = 'tenure_fences';
/** The longest name of any backend. */
export const maxResourceBytes = 512;

/** Serializes concurrent migrations: IF NOT EXISTS alone fails when two of them find no table. */
const migrationLock = '7523014692817723002';

/**
 * One statement that does nothing when the table is current, so the rights to create and alter are needed only once. An
 * earlier version had a column of 255 characters with the database's default collation.
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

/** SQLite stores text of any length in any column type, and compares bytes. */
export function sqliteFences(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (resource TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL)`;
}

/** Names are stored as UTF-8 bytes, because MySQL's collations treat some different names as equal. */
export function mysqlFences(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  resource VARBINARY(${maxResourceBytes}) NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL
) ENGINE = InnoDB`;
}

/**
 * Converts a table whose names are text: first to UTF-8 with a binary collation, so that no two names become equal,
 * then to bytes. Both statements do nothing on a current table, so concurrent repairs are safe.
 */
export function mysqlFencesRepair(table: string): readonly string[] {
  return [
    `ALTER TABLE ${table} CONVERT TO CHARACTER SET utf8mb4
  /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */`,
    `ALTER TABLE ${table} MODIFY resource VARBINARY(${maxResourceBytes}) NOT NULL`,
  ];
}
