-- Creates the table of fenceStatements of tenure/guard, or repairs one of an earlier version. It can be run repeatedly;
-- migrateFences() does the same. The table may be in another database than the leases.
DO $fences$ BEGIN
  PERFORM pg_advisory_xact_lock(7523014692817723002);
  IF to_regclass('tenure_fences') IS NULL THEN
    CREATE TABLE IF NOT EXISTS tenure_fences (resource text COLLATE "C" NOT NULL PRIMARY KEY, token bigint NOT NULL);
  END IF;
  IF EXISTS (
    SELECT FROM pg_catalog.pg_attribute AS a LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = a.attcollation
    WHERE a.attrelid = to_regclass('tenure_fences') AND a.attname = 'resource'
      AND (a.atttypid <> 'text'::regtype OR c.collname <> 'C')
  ) THEN
    ALTER TABLE tenure_fences ALTER COLUMN resource TYPE text COLLATE "C";
  END IF;
END $fences$;
