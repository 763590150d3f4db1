import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { makeData } from './postgres-data.ts';
import {
  freePort,
  postgresFolder,
  postgresProgram,
  postgresUser,
  runAsPostgres,
  spawnAsPostgres,
} from './postgres-programs.ts';
import { queryOnce } from './query-once.ts';

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
    const cluster = new PostgresCluster(await freePort(), postgresFolder());
    await makeData(cluster.#data);
    await cluster.#configure(settings);
    await cluster.start();
    return cluster;
  }

  /** A streaming standby of this server, made by a copy of it. */
  async createStandby(settings: Readonly<Record<string, string>> = {}): Promise<PostgresCluster> {
    const standby = new PostgresCluster(await freePort(), postgresFolder());
    const copy = ['-D', standby.#data, '-R', '--checkpoint=fast', '--no-sync'];
    await this.client('pg_basebackup', ...copy);
    await standby.#configure(settings);
    await standby.start();
    return standby;
  }

  url(database = 'postgres', as = postgresUser): string {
    return `postgres://${as}@127.0.0.1:${this.port}/${database}`;
  }

  async start(): Promise<void> {
    const server = spawnAsPostgres(postgresProgram('postgres'), '-D', this.#data);
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
  query(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    return queryOnce(this.url(), text, values);
  }

  /** Runs one of the client programs, such as pg_dump, against it and gives what it prints. */
  client(program: string, ...args: readonly string[]): Promise<string> {
    const at = ['-h', '127.0.0.1', '-p', `${this.port}`, '-U', postgresUser];
    return runAsPostgres(postgresProgram(program), ...at, ...args);
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
}
