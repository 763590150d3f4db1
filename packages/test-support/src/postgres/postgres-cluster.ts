import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChildProgram } from '../child-program.ts';
import { freePort } from '../free-ports.ts';
import { initializeData, makeData } from './postgres-data.ts';
import { postgresProgram, postgresUser } from './postgres-programs.ts';
import { queryOnce } from './query-once.ts';

const startTimeoutMs = 120_000;
/** Without fsync, since tests crash the database but not the machine. */
const testSettings = { fsync: 'off', shared_buffers: '16MB', max_connections: '60' };

/** A private database server, in its own folder and on its own port, which can be stopped and restarted. */
export class PostgresCluster {
  readonly port: number;
  readonly #folder: string;
  #program: ChildProgram | undefined;

  private constructor(port: number, folder: string) {
    this.port = port;
    this.#folder = folder;
  }

  /** Creates a server and starts it; `settings` are lines of postgresql.conf. */
  static async create(settings: Readonly<Record<string, string>> = {}): Promise<PostgresCluster> {
    const cluster = new PostgresCluster(await freePort(), postgresUser.folder());
    await makeData(cluster.#data);
    await cluster.#configure({ ...testSettings, ...settings });
    await cluster.start();
    return cluster;
  }

  /** A server with PostgreSQL's own defaults, durable, for measurements. */
  static async createWithDefaults(): Promise<PostgresCluster> {
    const cluster = new PostgresCluster(await freePort(), postgresUser.folder());
    await initializeData(cluster.#data);
    await cluster.#configure({});
    await cluster.start();
    return cluster;
  }

  /** A streaming standby of this server, created from a copy of it. */
  async createStandby(settings: Readonly<Record<string, string>> = {}): Promise<PostgresCluster> {
    const standby = new PostgresCluster(await freePort(), postgresUser.folder());
    const copy = ['-D', standby.#data, '-R', '--checkpoint=fast', '--no-sync'];
    await this.client('pg_basebackup', ...copy);
    await standby.#configure({ ...testSettings, ...settings });
    await standby.start();
    return standby;
  }

  url(database = 'postgres', as = postgresUser.name): string {
    return `postgres://${as}@127.0.0.1:${this.port}/${database}`;
  }

  async start(): Promise<void> {
    const command = postgresUser.command(postgresProgram('postgres'), ['-D', this.#data], 'SIGQUIT');
    this.#program = new ChildProgram({ ...command, cwd: '/' });
    await this.#program.answers(() => this.query('SELECT'), startTimeoutMs);
  }

  /** The process that is the parent of the server's other processes. */
  get pid(): number {
    return this.#program?.pid ?? -1;
  }

  /** `immediate` is like a crash: nothing is written, and the next start recovers. `kill` is kill -9. */
  async stop(how: 'fast' | 'immediate' | 'kill' = 'immediate'): Promise<void> {
    await this.#program?.end(({ fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const)[how]);
    this.#program = undefined;
  }

  async dispose(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Makes a standby the primary. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote()');
  }

  /** Runs one statement on a new connection and returns its rows. */
  query(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    return queryOnce(this.url(), text, values);
  }

  /** Runs one of the client programs, such as pg_dump, against it and returns its output. */
  client(program: string, ...args: readonly string[]): Promise<string> {
    const at = ['-h', '127.0.0.1', '-p', `${this.port}`, '-U', postgresUser.name];
    return postgresUser.run(postgresProgram(program), ...at, ...args);
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  async #configure(settings: Readonly<Record<string, string>>): Promise<void> {
    const all = {
      listen_addresses: '127.0.0.1',
      port: `${this.port}`,
      unix_socket_directories: '',
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'`);
    writeFileSync(join(this.#data, 'postgresql.auto.conf'), `${lines.join('\n')}\n`, { flag: 'a' });
  }
}
