/** The same text as `sql/sqlite/0001-leases.sql` between BEGIN and COMMIT. It can be run repeatedly. */
export const leaseSchemaSql = `-- The counter of each name. Its row is never deleted, or tickets would start again at 1.
CREATE TABLE IF NOT EXISTS tenure_lines (
  name TEXT NOT NULL PRIMARY KEY,
  last_ticket INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS tenure_entries (
  name TEXT NOT NULL,
  ticket INTEGER NOT NULL,
  id TEXT NOT NULL,
  holder TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared', 'permit', 'member')),
  permits INTEGER NOT NULL,
  ttl_ms INTEGER NOT NULL,
  data TEXT NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (name, ticket)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS tenure_versions (
  version INTEGER NOT NULL PRIMARY KEY
);

INSERT OR IGNORE INTO tenure_versions (version) VALUES (1);
`;
