import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../packages/server/src/engines/postgres/testing/postgres-programs.ts';
import { DatabaseProgram, temporaryFolder } from './database-programs.ts';
import type { PostgresCluster } from '../../packages/server/src/engines/postgres/testing/postgres-cluster.ts';

const user = 'postgres';
const path = '/usr/sbin/pgbouncer';

/** Where Debian puts the program; undefined when it is not installed. */
export const pgbouncer = existsSync(path) ? path : undefined;

export type PoolMode = 'session' | 'transaction' | 'statement';

/**
 * PgBouncer before a database. In transaction mode each transaction may run on another connection, and nothing of a
 * session stays; in session mode a client has a connection for itself until it leaves.
 */
export class PgBouncer {
  readonly url: string;
  readonly port: number;
  readonly #folder: ReturnType<typeof temporaryFolder>;
  readonly #program: DatabaseProgram;

  private constructor(url: string, port: number, folder: ReturnType<typeof temporaryFolder>, program: DatabaseProgram) {
    this.url = url;
    this.port = port;
    this.#folder = folder;
    this.#program = program;
  }

  /** `as` is the user at the database, whoever comes. */
  static async start(cluster: PostgresCluster, as: string, mode: PoolMode, more: readonly string[] = []) {
    const [port, folder] = [await freePort(), temporaryFolder(user)];
    const settings = [
      '[databases]',
      `* = host=127.0.0.1 port=${cluster.port} user=${as}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      `pool_mode = ${mode}`,
      `default_pool_size = ${mode === 'session' ? 20 : 4}`,
      'server_reset_query_always = 1',
      'server_reset_query = DISCARD ALL',
      ...more,
    ];
    const file = join(folder.path, 'pgbouncer.ini');
    writeFileSync(file, `${settings.join('\n')}\n`);
    const program = new DatabaseProgram(user, path, [file]);
    await program.answers(async () => {
      const client = new Client({ connectionString: urlAt(cluster, port) });
      client.on('error', () => undefined);
      await client.connect();
      await client.end();
    });
    return new PgBouncer(urlAt(cluster, port), port, folder, program);
  }

  async stop(): Promise<void> {
    await this.#program.stop('SIGKILL');
    this.#folder.remove();
  }
}

function urlAt(cluster: PostgresCluster, port: number): string {
  const url = new URL(cluster.url());
  url.port = `${port}`;
  return url.href;
}
