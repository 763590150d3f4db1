/** The version in `tenure_versions` that this library needs. */
export const schemaVersion = 1;

/** Text is stored as UTF-8 bytes, because MySQL's collations treat some different names as equal. */
const tables: readonly string[] = [
  `-- The counter of each name. Its row is never deleted, or tickets would start again at 1.
CREATE TABLE IF NOT EXISTS tenure_lines (
  name VARBINARY(512) NOT NULL PRIMARY KEY,
  last_ticket BIGINT NOT NULL
) ENGINE = InnoDB`,
  `CREATE TABLE IF NOT EXISTS tenure_entries (
  name VARBINARY(512) NOT NULL,
  ticket BIGINT NOT NULL,
  id VARBINARY(255) NOT NULL,
  holder BLOB NOT NULL,
  mode VARBINARY(16) NOT NULL,
  permits INT NOT NULL,
  ttl_ms BIGINT NOT NULL,
  data MEDIUMBLOB NOT NULL,
  expires_at DATETIME(6) NOT NULL,
  updates BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (name, ticket)
) ENGINE = InnoDB`,
  `CREATE TABLE IF NOT EXISTS tenure_versions (
  version INT NOT NULL PRIMARY KEY
) ENGINE = InnoDB`,
];

const dropEnter = 'DROP PROCEDURE IF EXISTS tenure_enter';

/**
 * One call, so that no lock is held while a client pauses or is cut off. In READ COMMITTED each statement sees what was
 * committed before it began. The counter is locked first, so the list contains every entry with a smaller number.
 */
const createEnter = `CREATE PROCEDURE tenure_enter(
  a_name VARBINARY(512), an_id VARBINARY(255), a_holder BLOB, a_mode VARBINARY(16), a_permits INT, a_ttl_ms BIGINT,
  its_data MEDIUMBLOB, only_if_holds BOOLEAN
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE given BIGINT DEFAULT NULL;
  DECLARE not_beside BIGINT DEFAULT 0;
  DECLARE beside BIGINT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  INSERT INTO tenure_lines (name, last_ticket) VALUES (a_name, 1)
    ON DUPLICATE KEY UPDATE last_ticket = last_ticket + 1;
  SELECT last_ticket INTO given FROM tenure_lines WHERE name = a_name;
  DELETE FROM tenure_entries WHERE name = a_name AND expires_at <= UTC_TIMESTAMP(6);
  SELECT COUNT(CASE WHEN a_mode = 'exclusive' OR mode <> a_mode THEN 1 END), COUNT(*) INTO not_beside, beside
    FROM tenure_entries WHERE name = a_name AND mode <> 'member';
  IF only_if_holds AND a_mode <> 'member' AND (not_beside > 0 OR (a_mode = 'permit' AND beside >= a_permits)) THEN
    SET given = NULL;
  ELSE
    INSERT INTO tenure_entries (name, ticket, id, holder, mode, permits, ttl_ms, data, expires_at)
    VALUES (a_name, given, an_id, a_holder, a_mode, a_permits, a_ttl_ms, its_data,
      UTC_TIMESTAMP(6) + INTERVAL a_ttl_ms * 1000 MICROSECOND);
  END IF;
  SELECT CAST(given AS CHAR) AS own_ticket, name, id, CAST(ticket AS CHAR) AS ticket, holder, mode, permits, ttl_ms,
    data, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS left_us
    FROM tenure_entries AS e WHERE name = a_name ORDER BY e.ticket;
  COMMIT;
END`;

const insertVersion = 'INSERT IGNORE INTO tenure_versions (version) VALUES (1)';

/** To run in this order on one connection. They can be repeated, but not concurrently. */
export const leaseSchemaStatements: readonly string[] = [...tables, dropEnter, createEnter, insertVersion];

/** The same for the client `mysql`, the text of `sql/mysql/0001-leases.sql`. */
export const leaseSchemaScript = `${[...tables, dropEnter].join(';\n\n')};

DELIMITER //
${createEnter}//
DELIMITER ;

${insertVersion};
`;
