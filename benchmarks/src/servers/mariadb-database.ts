import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { DatabaseUser } from './database-user.ts';
import { freePorts } from './free-ports.ts';
import { ServerProcess } from './server-process.ts';

/** The server takes one statement in each line. */
const setUp = [
  'CREATE DATABASE IF NOT EXISTS bench;',
  `CREATE USER IF NOT EXISTS bench@'%' IDENTIFIED BY '';`,
  `GRANT ALL ON *.* TO bench@'%';`,
];
const databaseUser = new DatabaseUser('mysql');

/** A MariaDB with its defaults, durable, in a folder of its own, with a user `bench` and a database of that name. */
export class MariadbDatabase {
  readonly port: number;
  readonly #folder: string;
  readonly #process: ServerProcess;

  private constructor(port: number, folder: string, process: ServerProcess) {
    this.port = port;
    this.#folder = folder;
    this.#process = process;
  }

  static async start(): Promise<MariadbDatabase> {
    const folder = databaseUser.folder('tenure-bench-mariadb-');
    const data = `--datadir=${join(folder, 'data')}`;
    const temporary = `--tmpdir=${folder}`;
    try {
      const install = databaseUser.command('mariadb-install-db', ['--no-defaults', '--skip-test-db', data, temporary]);
      execFileSync(install.program, install.args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
      const users = join(folder, 'users.sql');
      writeFileSync(users, `${setUp.join('\n')}\n`, { mode: 0o644 });
      const [port = 0] = await freePorts(1);
      const args = [
        '--no-defaults',
        data,
        temporary,
        `--socket=${join(folder, 'socket')}`,
        `--pid-file=${join(folder, 'pid')}`,
      ];
      const network = [`--init-file=${users}`, `--port=${port}`, '--bind-address=127.0.0.1', '--skip-name-resolve'];
      const command = databaseUser.command('/usr/sbin/mariadbd', [...args, ...network]);
      return new MariadbDatabase(port, folder, await ServerProcess.start('MariaDB', command, () => accepts(port)));
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get options(): mysql.PoolOptions {
    return optionsAt(this.port);
  }

  async stop(): Promise<void> {
    await this.#process.stop('SIGTERM');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function optionsAt(port: number): mysql.PoolOptions {
  return { host: '127.0.0.1', port, user: 'bench', database: 'bench' };
}

async function accepts(port: number): Promise<boolean> {
  const connection = await mysql.createConnection(optionsAt(port));
  await connection.end();
  return true;
}
