import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PoolOptions } from 'mysql2/promise';
import { ChildProgram } from './child-program.ts';
import { freePort } from './free-ports.ts';
import { mariadbPath } from './installed-programs.ts';
import { SystemUser } from './system-user.ts';

const startTimeoutMs = 120_000;
const mysqlUser = new SystemUser('mysql');
/** The server reads one statement per line. */
const setUp = [`CREATE USER IF NOT EXISTS app@'%' IDENTIFIED BY '';`, `GRANT ALL ON *.* TO app@'%' WITH GRANT OPTION;`];
/** Small and fast: tests crash the server and never the machine. */
const testFlags = ['--innodb-buffer-pool-size=32M', '--innodb-flush-log-at-trx-commit=2'];

/** A private MariaDB server, with a user `app` without a password. */
export class MariadbServer {
  readonly port: number;
  readonly #folder = mysqlUser.folder();
  readonly #flags: readonly string[];
  #program: ChildProgram | undefined;

  private constructor(port: number, flags: readonly string[]) {
    this.port = port;
    this.#flags = flags;
  }

  static start(): Promise<MariadbServer> {
    return MariadbServer.#startWith(testFlags);
  }

  /** With MariaDB's own defaults, durable, for measurements. */
  static startWithDefaults(): Promise<MariadbServer> {
    return MariadbServer.#startWith([]);
  }

  /** Without a database the server's own one is used, in which every call that needs a table fails. */
  options(database?: string, as = 'app', port = this.port): PoolOptions {
    return { host: '127.0.0.1', port, user: as, connectionLimit: 5, ...(database === undefined ? {} : { database }) };
  }

  async query(sql: string): Promise<unknown> {
    // Imported here because most users of this package do not need the driver.
    const { createConnection } = await import('mysql2/promise');
    const connection = await createConnection({ ...this.options(), multipleStatements: true });
    try {
      return (await connection.query(sql))[0];
    } finally {
      await connection.end();
    }
  }

  /** As after a crash. */
  async restart(): Promise<void> {
    await this.#program?.end('SIGKILL');
    await this.#start();
  }

  async stop(): Promise<void> {
    await this.#program?.end('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  static async #startWith(flags: readonly string[]): Promise<MariadbServer> {
    const server = new MariadbServer(await freePort(), flags);
    try {
      await server.#install();
      await server.#start();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  async #install(): Promise<void> {
    const flags = ['--no-defaults', '--auth-root-authentication-method=normal', '--skip-test-db', ...this.#places];
    await mysqlUser.run('mariadb-install-db', ...flags);
    writeFileSync(this.#usersFile, `${setUp.join('\n')}\n`, { mode: 0o644 });
  }

  async #start(): Promise<void> {
    const command = mysqlUser.command(mariadbPath, [
      '--no-defaults',
      ...this.#places,
      `--socket=${join(this.#folder, 'socket')}`,
      `--pid-file=${join(this.#folder, 'pid')}`,
      `--init-file=${this.#usersFile}`,
      `--port=${this.port}`,
      '--bind-address=127.0.0.1',
      '--skip-name-resolve',
      ...this.#flags,
    ]);
    this.#program = new ChildProgram({ ...command, cwd: '/' });
    await this.#program.answers(() => this.query('SELECT 1'), startTimeoutMs);
  }

  /** At start a server removes the temporary tables that it finds, including those of other servers in /tmp. */
  get #places(): readonly string[] {
    return [`--datadir=${join(this.#folder, 'data')}`, `--tmpdir=${this.#folder}`];
  }

  get #usersFile(): string {
    return join(this.#folder, 'users.sql');
  }
}
