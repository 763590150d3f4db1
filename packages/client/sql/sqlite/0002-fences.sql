-- The table of fenceStatements of tenure/guard, made, or repaired where an earlier version made it. Run it as often as
-- you like; migrateFences() does the same. It may be in another database than the leases.
CREATE TABLE IF NOT EXISTS tenure_fences (resource TEXT NOT NULL PRIMARY KEY, token INTEGER NOT NULL);
