import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChildProgram } from './child-program.ts';
import { freePort } from './free-ports.ts';
import { pgbouncerPath } from './installed-programs.ts';
import type { PostgresCluster } from './postgres/postgres-cluster.ts';
import { postgresUser } from './postgres/postgres-programs.ts';
import { queryOnce } from './postgres/query-once.ts';

const startTimeoutMs = 60_000;

export type PoolMode = 'session' | 'transaction' | 'statement';

/**
 * PgBouncer in front of a database. In transaction mode each transaction may run on another connection, and no session
 * state remains; in session mode a client has a connection until it disconnects.
 */
export class PgBouncer {
  readonly url: string;
  readonly port: number;
  readonly #folder: string;
  readonly #program: ChildProgram;

  private constructor(url: string, port: number, folder: string, program: ChildProgram) {
    this.url = url;
    this.port = port;
    this.#folder = folder;
    this.#program = program;
  }

  /** `as` is the user at the database, for every client. */
  static async start(cluster: PostgresCluster, as: string, mode: PoolMode, more: readonly string[] = []) {
    const [port, folder] = [await freePort(), postgresUser.folder()];
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
    const file = join(folder, 'pgbouncer.ini');
    writeFileSync(file, `${settings.join('\n')}\n`);
    const program = new ChildProgram({ ...postgresUser.command(pgbouncerPath, [file]), cwd: '/' });
    await program.answers(() => queryOnce(urlAt(cluster, port), 'SELECT 1'), startTimeoutMs);
    return new PgBouncer(urlAt(cluster, port), port, folder, program);
  }

  async stop(): Promise<void> {
    await this.#program.end('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function urlAt(cluster: PostgresCluster, port: number): string {
  const url = new URL(cluster.url());
  url.port = `${port}`;
  return url.href;
}
