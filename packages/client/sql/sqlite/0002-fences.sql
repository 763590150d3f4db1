-- Creates the table of fenceStatements of tenure/guard, or repairs one of an earlier version. It can be run repeatedly;
-- migrateFences() does the same. The table may be in another database than the leases.
CREATE TABLE IF NOT EXISTS tenure_fences (resource TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL);
