/** The version in `tenure_versions` that this library needs. */
export const schemaVersion = 1;

/** The schema that the SQL below is written for; `inSchema` writes it for another. */
export const defaultSchema = 'public';

/** Serializes concurrent migrations: IF NOT EXISTS alone fails when two of them find no table. */
export const migrationLockSql = 'SELECT pg_advisory_xact_lock(7523014692817723001);';

/**
 * The whole schema of the backend in PostgreSQL, the same text as `sql/postgres/0001-leases.sql`. It can be run
 * repeatedly.
 */
export const leaseSchemaSql = `-- The counter of each name. Its row is never deleted, or tickets would start again at 1.
CREATE TABLE IF NOT EXISTS public.tenure_lines (
  name text COLLATE "C" PRIMARY KEY,
  last_ticket bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS public.tenure_entries (
  name text COLLATE "C" NOT NULL,
  ticket bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  holder text NOT NULL,
  mode text NOT NULL CHECK (mode IN ('exclusive', 'shared', 'permit', 'member')),
  permits integer NOT NULL,
  ttl_ms bigint NOT NULL,
  data text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (name, ticket)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE TABLE IF NOT EXISTS public.tenure_versions (
  version integer PRIMARY KEY,
  migrated_at timestamptz NOT NULL DEFAULT now()
);

-- Whether an entry of this mode would hold at once at the end of the current queue.
CREATE OR REPLACE FUNCTION public.tenure_is_free(a_name text, a_mode text, a_permits integer) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  SELECT a_mode = 'member' OR (
    count(*) FILTER (WHERE a_mode = 'exclusive' OR mode <> a_mode) = 0
    AND (a_mode <> 'permit' OR count(*) < a_permits)
  )
  FROM public.tenure_entries WHERE name = a_name AND mode <> 'member';
$$;

-- One call, so that no lock is held while a client pauses or is cut off. Each statement in it sees what was committed
-- before it began. The list is read after the counter was locked, so it has every entry with a smaller ticket.
CREATE OR REPLACE FUNCTION public.tenure_enter(
  a_name text, an_id text, a_holder text, a_mode text, a_permits integer, a_ttl_ms bigint, its_data text,
  only_if_holds boolean
) RETURNS TABLE (own_ticket bigint, entry public.tenure_entries)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  given bigint;
BEGIN
  DELETE FROM public.tenure_entries WHERE name = a_name AND expires_at <= clock_timestamp();
  -- Who is refused takes no lock and writes nothing.
  IF NOT only_if_holds OR public.tenure_is_free(a_name, a_mode, a_permits) THEN
    INSERT INTO public.tenure_lines AS line (name, last_ticket) VALUES (a_name, 1)
    ON CONFLICT (name) DO UPDATE SET last_ticket = line.last_ticket + 1
    RETURNING line.last_ticket INTO given;
    IF only_if_holds AND NOT public.tenure_is_free(a_name, a_mode, a_permits) THEN
      given := NULL;
    ELSE
      INSERT INTO public.tenure_entries (name, ticket, id, holder, mode, permits, ttl_ms, data, expires_at)
      VALUES (a_name, given, an_id, a_holder, a_mode, a_permits, a_ttl_ms, its_data,
        clock_timestamp() + a_ttl_ms * interval '1 millisecond');
    END IF;
  END IF;
  RETURN QUERY SELECT given, stored FROM public.tenure_entries AS stored
    WHERE stored.name = a_name ORDER BY stored.ticket;
END;
$$;

INSERT INTO public.tenure_versions (version) VALUES (1) ON CONFLICT DO NOTHING;
`;

/** The same text, or a statement, for tables in a schema of another name. */
export function inSchema(sql: string, schema: string): string {
  return sql.replaceAll('public.', `"${schema.replaceAll('"', '""')}".`);
}

/**
 * Reads the catalog first: IF NOT EXISTS needs the right to create a schema even if it exists, and uses a cache that
 * may miss a schema that another process created while this one waited for the lock.
 */
export function createSchemaSql(schema: string): string {
  const literal = `'${schema.replaceAll("'", "''")}'`;
  return `DO $create$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = ${literal}) THEN
    EXECUTE format('CREATE SCHEMA %I', ${literal});
  END IF;
END $create$;`;
}
