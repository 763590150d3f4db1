import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { freePort } from '../../packages/server/src/engines/postgres/testing/postgres-programs.ts';
import { DatabaseProgram, runAs, temporaryFolder } from './database-programs.ts';

const user = 'mysql';
const path = '/usr/sbin/mariadbd';

/** Where Debian puts the program; undefined when it is not installed. */
export const mariadb = existsSync(path) ? path : undefined;

/** A MariaDB of the test's own, with a user `app` without a password. */
export class MariadbServer {
  readonly port: number;
  readonly #folder: ReturnType<typeof temporaryFolder>;
  #program: DatabaseProgram | undefined;

  private constructor(port: number) {
    this.port = port;
    this.#folder = temporaryFolder(user);
  }

  static async start(): Promise<MariadbServer> {
    const server = new MariadbServer(await freePort());
    runAs(user, 'mariadb-install-db', [
      '--no-defaults',
      '--auth-root-authentication-method=normal',
      `--datadir=${server.#data}`,
      server.#temporary,
    ]);
    const users = [
      `CREATE USER IF NOT EXISTS app@'%' IDENTIFIED BY '';`,
      `GRANT ALL ON *.* TO app@'%' WITH GRANT OPTION;`,
    ];
    writeFileSync(join(server.#folder.path, 'users.sql'), `${users.join('\n')}\n`, { mode: 0o644 });
    await server.#start();
    return server;
  }

  /** Without a database the server's own one is meant, so that every call fails that needs one. */
  options(database?: string, as = 'app', port = this.port): mysql.PoolOptions {
    return { host: '127.0.0.1', port, user: as, connectionLimit: 5, ...(database === undefined ? {} : { database }) };
  }

  async query(sql: string): Promise<unknown> {
    const connection = await mysql.createConnection({ ...this.options(), multipleStatements: true });
    try {
      return (await connection.query(sql))[0];
    } finally {
      await connection.end();
    }
  }

  /** As after a crash. */
  async restart(): Promise<void> {
    await this.#program?.stop('SIGKILL');
    await this.#start();
  }

  async stop(): Promise<void> {
    await this.#program?.stop('SIGKILL');
    this.#folder.remove();
  }

  async #start(): Promise<void> {
    const args = [
      '--no-defaults',
      `--datadir=${this.#data}`,
      this.#temporary,
      `--socket=${join(this.#folder.path, 'socket')}`,
      `--pid-file=${join(this.#folder.path, 'pid')}`,
      `--init-file=${join(this.#folder.path, 'users.sql')}`,
      `--port=${this.port}`,
      '--bind-address=127.0.0.1',
      '--innodb-buffer-pool-size=32M',
      '--innodb-flush-log-at-trx-commit=2',
      '--skip-name-resolve',
    ];
    this.#program = new DatabaseProgram(user, path, args);
    await this.#program.answers(() => this.query('SELECT 1'));
  }

  /** A server that starts removes the temporary tables that it finds, those of its neighbours in /tmp as well. */
  get #temporary(): string {
    return `--tmpdir=${this.#folder.path}`;
  }

  get #data(): string {
    return join(this.#folder.path, 'data');
  }
}
