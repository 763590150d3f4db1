-- Creates the table of fenceStatements of tenure/guard, or repairs one of an earlier version. It can be run repeatedly;
-- migrateFences() does the same. The table may be in another database than the leases.
CREATE TABLE IF NOT EXISTS tenure_fences (
  resource VARBINARY(512) NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL
) ENGINE = InnoDB;

ALTER TABLE tenure_fences CONVERT TO CHARACTER SET utf8mb4
  /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE utf8mb4_nopad_bin */;

ALTER TABLE tenure_fences MODIFY resource VARBINARY(512) NOT NULL;
