import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DatabaseUser } from './database-user.ts';
import { freePorts } from './free-ports.ts';
import { ServerProcess } from './server-process.ts';

const run = promisify(execFile);
const versionsFolder = '/usr/lib/postgresql';
const user = 'postgres';
const databaseUser = new DatabaseUser(user);

/** A PostgreSQL with its defaults, durable, in a folder of its own; its processor time is that of all its processes. */
export class PostgresDatabase {
  readonly port: number;
  readonly #folder: string;
  readonly #process: ServerProcess;

  private constructor(port: number, folder: string, process: ServerProcess) {
    this.port = port;
    this.#folder = folder;
    this.#process = process;
  }

  static async start(): Promise<PostgresDatabase> {
    const folder = databaseUser.folder('tenure-bench-postgres-');
    const data = join(folder, 'data');
    try {
      const initdb = databaseUser.command(program('initdb'), ['--auth=trust', `--username=${user}`, '-D', data]);
      await run(initdb.program, initdb.args, { cwd: folder });
      const [port = 0] = await freePorts(1);
      const settings = [`listen_addresses = '127.0.0.1'`, `port = ${port}`, `unix_socket_directories = ''`];
      writeFileSync(join(data, 'postgresql.auto.conf'), `${settings.join('\n')}\n`);
      const command = databaseUser.command(program('postgres'), ['-D', data]);
      return new PostgresDatabase(port, folder, await ServerProcess.start('PostgreSQL', command, () => accepts(port)));
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get url(): string {
    return `postgres://${user}@127.0.0.1:${this.port}/postgres`;
  }

  cpuMs(): number {
    return this.#process.cpuMs();
  }

  async stop(): Promise<void> {
    await this.#process.stop('SIGINT');
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export function postgresVersion(): string {
  const output = execFileSync(program('postgres'), ['--version'], { encoding: 'utf8' });
  return /(\d[\d.]*)/.exec(output)?.[1] ?? 'unknown';
}

function program(name: string): string {
  const versions = existsSync(versionsFolder) ? readdirSync(versionsFolder) : [];
  const newest = versions.sort((one, other) => Number(other) - Number(one))[0];
  if (newest === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql)');
  return join(versionsFolder, newest, 'bin', name);
}

/** A database that is starting up takes connections and refuses them in words. */
async function accepts(port: number): Promise<boolean> {
  await run(program('pg_isready'), ['-q', '-h', '127.0.0.1', '-p', String(port)]);
  return true;
}
