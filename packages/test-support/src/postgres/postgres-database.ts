import { randomUUID } from 'node:crypto';
import { testDatabase } from './postgres-data.ts';
import { queryOnce } from './query-once.ts';

/**
 * A separate database for a test file, on the server that all files of a run share. For tests that neither stop the
 * server nor change what belongs to all of its databases (roles, settings, connections of others).
 */
export class PostgresDatabase {
  readonly port: number;
  readonly #server: URL;
  readonly #name: string;

  private constructor(server: URL, name: string) {
    this.port = Number(server.port);
    this.#server = server;
    this.#name = name;
  }

  static async create(): Promise<PostgresDatabase> {
    const server = await testDatabase('/postgres');
    if (server === undefined) throw new Error('there is no shared PostgreSQL: the tests are run by vitest');
    const name = `test_${randomUUID().replaceAll('-', '')}`;
    await queryOnce(server, `CREATE DATABASE ${name}`);
    return new PostgresDatabase(new URL(server), name);
  }

  url(): string {
    const url = new URL(this.#server);
    url.pathname = this.#name;
    return url.href;
  }

  /** Runs one statement on a new connection and returns its rows. */
  query(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    return queryOnce(this.url(), text, values);
  }

  /**
   * Connections that a pool has just closed get a moment to end: if the server ended one meanwhile, it would throw an
   * unhandled error in this process.
   */
  async dispose(): Promise<void> {
    await queryOnce(this.#server.href, waitForSessions(this.#name));
    await queryOnce(this.#server.href, `DROP DATABASE ${this.#name} WITH (FORCE)`);
  }
}

/** Half a second at most. */
function waitForSessions(database: string): string {
  return `DO $$ BEGIN
    FOR look IN 1..50 LOOP
      PERFORM pg_stat_clear_snapshot();
      EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '${database}');
      PERFORM pg_sleep(0.01);
    END LOOP;
  END $$`;
}
