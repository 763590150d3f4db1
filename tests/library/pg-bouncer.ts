import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../packages/server/src/engines/postgres/testing/postgres-programs.ts';
import { DatabaseProgram, temporaryFolder } from './database-programs.ts';
import type { PostgresStores } from './postgres-stores.ts';

const user = 'postgres';
const path = '/usr/sbin/pgbouncer';

/** Where Debian puts the program; undefined when it is not installed. */
export const pgbouncer = existsSync(path) ? path : undefined;

/** PgBouncer in transaction mode: each transaction may run on another connection, and nothing of a session stays. */
export class PgBouncer {
  readonly port: number;
  readonly #folder: ReturnType<typeof temporaryFolder>;
  readonly #program: DatabaseProgram;

  private constructor(port: number, folder: ReturnType<typeof temporaryFolder>, program: DatabaseProgram) {
    this.port = port;
    this.#folder = folder;
    this.#program = program;
  }

  /** `as` is the user at the database, whoever comes. */
  static async start(stores: PostgresStores, as: string): Promise<PgBouncer> {
    const [port, folder] = [await freePort(), temporaryFolder(user)];
    const settings = [
      '[databases]',
      `* = host=127.0.0.1 port=${stores.cluster.port} user=${as}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      'default_pool_size = 4',
      'server_reset_query_always = 1',
      'server_reset_query = DISCARD ALL',
    ];
    const file = join(folder.path, 'pgbouncer.ini');
    writeFileSync(file, `${settings.join('\n')}\n`);
    const program = new DatabaseProgram(user, path, [file]);
    await program.answers(async () => {
      const client = new Client({ connectionString: stores.url(port) });
      client.on('error', () => undefined);
      await client.connect();
      await client.end();
    });
    return new PgBouncer(port, folder, program);
  }

  async stop(): Promise<void> {
    await this.#program.stop('SIGKILL');
    this.#folder.remove();
  }
}
