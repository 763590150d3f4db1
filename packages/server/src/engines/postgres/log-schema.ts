import { createHash } from 'node:crypto';
import { escapeIdentifier } from 'pg';
import { EngineError } from '../engine-error.ts';
import { sqlStateOf } from './postgres-failure.ts';
import type { PostgresSession } from './postgres-session.ts';

const schemaVersion = 1;
/** Short enough that the names built from it stay under PostgreSQL's 63 bytes. */
const schemaName = /^[a-z_][a-z0-9_]{0,47}$/;
/** How long another server may take that creates the same schema at the same time. */
const createTimeoutMs = 30_000;

/** The names of one log in a database, quoted for statements. */
export class LogSchema {
  readonly name: string;
  /** Notifications are visible in the whole database, so the channel contains the schema's name. */
  readonly channel: string;
  readonly meta: string;
  readonly head: string;
  readonly entries: string;
  readonly snapshots: string;
  readonly snapshotChunks: string;

  constructor(name: string) {
    if (!schemaName.test(name) || name.startsWith('pg_')) {
      const rule = 'up to 48 lower-case letters, digits and _, beginning with no digit and not with pg_';
      throw new EngineError('unusable', `'${name}' cannot name the schema of the log: ${rule}`);
    }
    const table = (of: string): string => `${escapeIdentifier(name)}.${of}`;
    this.name = name;
    this.channel = `tenure_${name}`;
    this.meta = table('meta');
    this.head = table('head');
    this.entries = table('entries');
    this.snapshots = table('snapshots');
    this.snapshotChunks = table('snapshot_chunks');
  }

  /** Creates the schema if it does not exist, once for any number of starting servers; refuses an incompatible one. */
  async prepare(session: PostgresSession): Promise<void> {
    if (await this.#isThere(session)) return this.#checkRights(session);
    try {
      await session.query({ text: 'BEGIN' });
      // Held to the end of the transaction, so that one of many servers creates the schema and the others find it.
      const lock = { text: 'SELECT pg_advisory_xact_lock($1)', values: [this.#lockKey()], timeoutMs: createTimeoutMs };
      await session.query(lock);
      if (!(await this.check(session))) {
        await this.#refuseForeign(session);
        // Even CREATE SCHEMA IF NOT EXISTS needs a privilege that is unnecessary when the schema already exists.
        const there = await session.query({ text: 'SELECT FROM pg_namespace WHERE nspname = $1', values: [this.name] });
        if (there.length === 0) await session.query({ text: `CREATE SCHEMA ${escapeIdentifier(this.name)}` });
        for (const text of this.#statements()) await session.query({ text, timeoutMs: createTimeoutMs });
      }
      await session.query({ text: 'COMMIT', timeoutMs: createTimeoutMs });
    } catch (error) {
      await session.query({ text: 'ROLLBACK' }).catch(() => undefined);
      if (sqlStateOf(error) === '42501') throw await this.#lackOfRights(session, error);
      throw error;
    }
  }

  async #isThere(session: PostgresSession): Promise<boolean> {
    try {
      return await this.check(session);
    } catch (error) {
      if (sqlStateOf(error) !== '42501') throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new EngineError('unusable', `${reason}; ${await this.#grants(session)}`, { cause: error });
    }
  }

  /** A missing privilege is found here, and not by the first append. */
  async #checkRights(session: PostgresSession): Promise<void> {
    const needed = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
    const has = needed.map((right) => `has_table_privilege(c.oid, '${right}')`).join(' AND ');
    const text = `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relkind = 'r' AND NOT (${has}) ORDER BY name LIMIT 1`;
    const [lacking] = await session.query({ text, values: [this.name] });
    if (lacking === undefined) return;
    const what = `permission denied for table ${this.name}.${String(lacking['name'])}`;
    throw new EngineError('unusable', `${what}; ${await this.#grants(session)}`);
  }

  async #grants(session: PostgresSession): Promise<string> {
    const [row] = await session.query({ text: 'SELECT current_user AS role' });
    const role = escapeIdentifier(String(row?.['role']));
    const tables = `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${this.name} TO ${role};`;
    return `run as the owner of the schema: GRANT USAGE ON SCHEMA ${this.name} TO ${role}; ${tables}`;
  }

  /** Whether the schema exists. Throws EngineError `unusable` when it is of a newer version. */
  async check(session: PostgresSession): Promise<boolean> {
    // Reads the catalog itself: to_regclass may answer from a cache without the commits of other sessions.
    const text = `SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = 'meta'`;
    if ((await session.query({ text, values: [this.name] })).length === 0) return false;
    const [row] = await session.query({ text: `SELECT version FROM ${this.meta}` });
    const version = Number(row?.['version'] ?? 0);
    if (version === schemaVersion) return true;
    const found = `the schema ${this.name} of the database has version ${version}`;
    const help =
      version > schemaVersion
        ? 'it was made by a newer Tenure: start that one, or give another schema with --engine-schema'
        : 'that is none that Tenure makes: give another schema with --engine-schema';
    throw new EngineError('unusable', `${found}, and this program knows version ${schemaVersion}; ${help}`);
  }

  async #refuseForeign(session: PostgresSession): Promise<void> {
    const text = `SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 ORDER BY c.relname LIMIT 1`;
    const [foreign] = await session.query({ text, values: [this.name] });
    if (foreign === undefined) return;
    const what = `the schema ${this.name} holds ${String(foreign['relname'])} and other things that are not Tenure's`;
    throw new EngineError('unusable', `${what}; give a schema of its own with --engine-schema`);
  }

  async #lackOfRights(session: PostgresSession, cause: unknown): Promise<unknown> {
    const text = 'SELECT current_user AS role, current_database() AS database';
    const [row] = await session.query({ text }).catch(() => []);
    if (row === undefined) return cause;
    const [role, database] = [String(row['role']), String(row['database'])].map(escapeIdentifier);
    const reason = cause instanceof Error ? cause.message : String(cause);
    const help = `as the owner of the database: CREATE SCHEMA IF NOT EXISTS ${this.name}; ALTER SCHEMA ${this.name}`;
    const message = `the schema of the log cannot be made (${reason}); run ${help} OWNER TO ${role}; in ${database}`;
    return new EngineError('unusable', message, { cause });
  }

  #lockKey(): string {
    return createHash('sha256').update(`tenure schema ${this.name}`).digest().readBigInt64BE().toString();
  }

  /**
   * `head` is one row that is found by its index column, which changes with each append: while a long transaction keeps
   * its dead versions, the current one is still found at once. The bytea columns are stored uncompressed: compression
   * happens above, and a value split in two is read without the rest.
   */
  #statements(): string[] {
    const start = `'\\x${'00'.repeat(16)}'`;
    return [
      `CREATE TABLE ${this.meta} (version int NOT NULL, created_at timestamptz NOT NULL DEFAULT now())`,
      `CREATE TABLE ${this.head} (index bigint PRIMARY KEY, hash bytea NOT NULL,
        trimmed_index bigint NOT NULL, trimmed_hash bytea NOT NULL)`,
      `CREATE TABLE ${this.entries} (index bigint PRIMARY KEY, hash bytea NOT NULL, bytes bytea NOT NULL)`,
      `ALTER TABLE ${this.entries} ALTER COLUMN bytes SET STORAGE EXTERNAL`,
      `CREATE TABLE ${this.snapshots} (id bigint PRIMARY KEY, index bigint NOT NULL, hash bytea NOT NULL,
        complete boolean NOT NULL DEFAULT false, ordinal bigint NOT NULL DEFAULT 0,
        chunk_rows bigint NOT NULL DEFAULT 0,
        digest bytea, created_at timestamptz NOT NULL DEFAULT now())`,
      `CREATE TABLE ${this.snapshotChunks} (snapshot_id bigint, ordinal bigint, is_continued boolean NOT NULL,
        bytes bytea NOT NULL, PRIMARY KEY (snapshot_id, ordinal))`,
      `ALTER TABLE ${this.snapshotChunks} ALTER COLUMN bytes SET STORAGE EXTERNAL`,
      `INSERT INTO ${this.head} VALUES (0, ${start}, 0, ${start})`,
      `INSERT INTO ${this.meta} (version) VALUES (${schemaVersion})`,
    ];
  }
}
