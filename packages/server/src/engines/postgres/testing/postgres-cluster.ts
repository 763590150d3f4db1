import { execFile, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';

const run = promisify(execFile);
const user = 'postgres';

/** Where Debian puts the programs of the newest version; undefined when PostgreSQL is not installed. */
function programFolder(): string | undefined {
  const versions = '/usr/lib/postgresql';
  if (!existsSync(versions)) return undefined;
  const newest = readdirSync(versions).sort((one, other) => Number(other) - Number(one))[0];
  const folder = join(versions, newest ?? '', 'bin');
  return existsSync(join(folder, 'initdb')) ? folder : undefined;
}

/** Whether tests with a real database can run; says why not, and fails instead where everything must be there. */
export function hasPostgres(): boolean {
  if (programFolder() !== undefined) return true;
  const message = 'PostgreSQL is not installed (Debian package postgresql)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.log(`skipped: ${message}`);
  return false;
}

/** A database server of our own, in a folder and on a port of its own, which can be stopped and started again. */
export class PostgresCluster {
  readonly port: number;
  readonly #folder: string;
  #process: { pid: number; ended: Promise<void> } | undefined;

  private constructor(port: number, folder: string) {
    this.port = port;
    this.#folder = folder;
  }

  /** Makes a server and starts it; `settings` are lines of postgresql.conf. */
  static async create(settings: Readonly<Record<string, string>> = {}): Promise<PostgresCluster> {
    const cluster = new PostgresCluster(await freePort(), temporaryFolder());
    await cluster.#program('initdb', '--no-sync', '--auth=trust', `--username=${user}`, '-D', cluster.#data);
    await cluster.#configure(settings);
    await cluster.start();
    return cluster;
  }

  /** A streaming standby of this server, made by a copy of it. */
  async createStandby(settings: Readonly<Record<string, string>> = {}): Promise<PostgresCluster> {
    const standby = new PostgresCluster(await freePort(), temporaryFolder());
    const source = ['-h', '127.0.0.1', '-p', `${this.port}`, '-U', user];
    await this.#program('pg_basebackup', ...source, '-D', standby.#data, '-R', '--checkpoint=fast', '--no-sync');
    await standby.#configure(settings);
    await standby.start();
    return standby;
  }

  url(database = 'postgres', as = user): string {
    return `postgres://${as}@127.0.0.1:${this.port}/${database}`;
  }

  async start(): Promise<void> {
    const folder = programFolder();
    if (folder === undefined) throw new Error('PostgreSQL is not installed');
    const server = spawnAs(join(folder, 'postgres'), ['-D', this.#data]);
    let log = '';
    server.stderr.on('data', (text: Buffer) => (log = `${log}${text.toString()}`.slice(-10_000)));
    const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
    this.#process = { pid: server.pid as number, ended };
    let isEnded = false;
    void ended.then(() => (isEnded = true));
    while (!(await this.#answers())) {
      if (isEnded) throw new Error(`PostgreSQL did not start:\n${log}`);
    }
  }

  /** `immediate` is as a crash: nothing is written, and the next start recovers. `kill` is kill -9. */
  async stop(how: 'fast' | 'immediate' | 'kill' = 'immediate'): Promise<void> {
    if (this.#process === undefined) return;
    const { pid, ended } = this.#process;
    this.#process = undefined;
    process.kill(pid, { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' }[how]);
    await ended;
  }

  async dispose(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Makes a standby the primary. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote()');
  }

  /** Runs one statement on a connection of its own and gives its rows. */
  async query(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: this.url() });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  /** Runs one of the client programs, such as pg_dump, against it and gives what it prints. */
  async client(program: string, ...args: readonly string[]): Promise<string> {
    const at = ['-h', '127.0.0.1', '-p', `${this.port}`, '-U', user];
    const { stdout } = await run(join(programFolder() ?? '', program), [...at, ...args], { cwd: tmpdir() });
    return stdout;
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  async #configure(settings: Readonly<Record<string, string>>): Promise<void> {
    const all = {
      listen_addresses: '127.0.0.1',
      port: `${this.port}`,
      unix_socket_directories: '',
      fsync: 'off',
      shared_buffers: '16MB',
      max_connections: '60',
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'`);
    writeFileSync(join(this.#data, 'postgresql.auto.conf'), `${lines.join('\n')}\n`, { flag: 'a' });
  }

  async #answers(): Promise<boolean> {
    const client = new Client({ connectionString: this.url(), connectionTimeoutMillis: 1_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.end();
      return true;
    } catch {
      return false;
    }
  }

  async #program(name: string, ...args: readonly string[]): Promise<void> {
    const [command, ...all] = asUser(join(programFolder() ?? '', name), args);
    await run(command as string, all, { cwd: this.#folder });
  }
}

/** PostgreSQL refuses to run as root. */
function asUser(program: string, args: readonly string[]): string[] {
  if (process.getuid?.() !== 0) return [program, ...args];
  return ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups', program, ...args];
}

function spawnAs(program: string, args: readonly string[]) {
  const [command, ...all] = asUser(program, args);
  return spawn(command as string, all, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' });
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-postgres-'));
  if (process.getuid?.() === 0) {
    const idOf = (flag: string): number => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }));
    chownSync(folder, idOf('-u'), idOf('-g'));
  }
  return folder;
}

/** A port that was free a moment ago: PostgreSQL does not choose one for itself. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
