import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { DatabaseProgram, freePort, runAs, temporaryFolder } from './database-programs.ts';

const user = 'postgres';

/** Where Debian puts the programs of the newest version; undefined when PostgreSQL is not installed. */
export function postgresPrograms(): string | undefined {
  const versions = '/usr/lib/postgresql';
  if (!existsSync(versions)) return undefined;
  const [newest] = readdirSync(versions).toSorted((one, other) => Number(other) - Number(one));
  const folder = join(versions, newest ?? '', 'bin');
  return existsSync(join(folder, 'initdb')) ? folder : undefined;
}

/** A PostgreSQL of the test's own. */
export class PostgresServer {
  readonly port: number;
  readonly #folder: ReturnType<typeof temporaryFolder>;
  #program: DatabaseProgram | undefined;

  private constructor(port: number) {
    this.port = port;
    this.#folder = temporaryFolder(user);
  }

  static async start(): Promise<PostgresServer> {
    const server = new PostgresServer(await freePort());
    runAs(user, server.#path('initdb'), ['--no-sync', '--auth=trust', `--username=${user}`, '-D', server.#data]);
    const settings = [
      `listen_addresses = '127.0.0.1'`,
      `port = ${server.port}`,
      `unix_socket_directories = ''`,
      'fsync = off',
      'shared_buffers = 16MB',
      'max_connections = 80',
    ];
    writeFileSync(join(server.#data, 'postgresql.auto.conf'), `${settings.join('\n')}\n`, { flag: 'a' });
    await server.#start();
    return server;
  }

  url(port = this.port, as = user): string {
    return `postgres://${as}@127.0.0.1:${port}/postgres`;
  }

  /** As after a crash: nothing is written before, and the start recovers. */
  async restart(): Promise<void> {
    await this.#program?.stop('SIGQUIT');
    await this.#start();
  }

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

  async stop(): Promise<void> {
    await this.#program?.stop('SIGQUIT');
    this.#folder.remove();
  }

  async #start(): Promise<void> {
    this.#program = new DatabaseProgram(user, this.#path('postgres'), ['-D', this.#data]);
    await this.#program.answers(() => this.query('SELECT 1'));
  }

  get #data(): string {
    return join(this.#folder.path, 'data');
  }

  #path(name: string): string {
    return join(postgresPrograms() ?? '', name);
  }
}
