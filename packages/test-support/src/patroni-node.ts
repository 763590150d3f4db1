import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChildProgram } from './child-program.ts';
import { freePorts } from './free-ports.ts';
import { isInstalled } from './installed-programs.ts';
import { postgresProgram, postgresUser } from './postgres/postgres-programs.ts';
import { queryOnce } from './postgres/query-once.ts';

const patroniPath = '/usr/bin/patroni';
const scope = 'tenure';

/** The key by which Patroni's nodes know their primary. */
export const patroniLeaderKey = `/service/${scope}/leader`;

export function hasPatroni(): boolean {
  return isInstalled(existsSync(patroniPath), 'patroni');
}

/** As Patroni's REST API answers at /patroni. */
export interface PatroniState {
  readonly state: string;
  readonly role: string;
  /** On the primary, one entry for each standby that streams from it. */
  readonly replication?: readonly { readonly application_name: string; readonly state: string }[];
}

interface NodeOptions {
  readonly name: string;
  /** host:port of each server of the store, which Patroni reaches by etcd's JSON gateway. */
  readonly stores: readonly string[];
  readonly ttlSeconds: number;
  readonly loopSeconds: number;
}

/** A PostgreSQL server under Patroni, which agrees with other nodes on the primary through a store. */
export class PatroniNode {
  readonly name: string;
  readonly #folder: string;
  readonly #restPort: number;
  readonly #port: number;
  #program: ChildProgram | undefined;

  private constructor(name: string, folder: string, restPort: number, port: number) {
    this.name = name;
    this.#folder = folder;
    this.#restPort = restPort;
    this.#port = port;
  }

  static async create(options: NodeOptions): Promise<PatroniNode> {
    const [restPort = 0, port = 0] = await freePorts(2);
    const node = new PatroniNode(options.name, postgresUser.folder(), restPort, port);
    writeFileSync(node.#configFile, JSON.stringify(node.#configuration(options)), { mode: 0o644 });
    node.start();
    return node;
  }

  start(): void {
    const command = postgresUser.command(patroniPath, [this.#configFile], 'SIGKILL');
    this.#program = new ChildProgram({ ...command, cwd: '/' });
  }

  /** What Patroni and its database have printed. */
  get output(): string {
    return (this.#program?.out ?? '') + (this.#program?.err ?? '');
  }

  async state(): Promise<PatroniState> {
    const reply = await fetch(`http://127.0.0.1:${this.#restPort}/patroni`, { signal: AbortSignal.timeout(5_000) });
    return (await reply.json()) as PatroniState;
  }

  /** To be asked of the primary. */
  async switchover(from: string, to: string): Promise<string> {
    const reply = await fetch(`http://127.0.0.1:${this.#restPort}/switchover`, {
      method: 'POST',
      body: JSON.stringify({ leader: from, candidate: to }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`the switchover was refused: ${reply.status} ${text}`);
    return text;
  }

  query(text: string): Promise<Record<string, unknown>[]> {
    return queryOnce(`postgres://${postgresUser.name}@127.0.0.1:${this.#port}/postgres`, text);
  }

  /** Patroni and its database at once, as when their machine fails. */
  async kill(): Promise<void> {
    const ended = this.#program?.end('SIGKILL');
    // The database has Patroni's output open.
    this.#killDatabase();
    await ended;
  }

  /** Ends Patroni, which ends its database and gives up the key. */
  async stop(): Promise<void> {
    await this.#program?.end('SIGTERM');
    this.#killDatabase();
  }

  get #configFile(): string {
    return join(this.#folder, 'patroni.json');
  }

  #killDatabase(): void {
    const file = join(this.#folder, 'data', 'postmaster.pid');
    if (!existsSync(file)) return;
    const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
    try {
      if (pid > 0 && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(this.#folder)) process.kill(pid, 'SIGKILL');
    } catch {
      // It ended in the meantime.
    }
  }

  /** YAML, which contains JSON. */
  #configuration({ name, stores, ttlSeconds, loopSeconds }: NodeOptions): unknown {
    const rest = `127.0.0.1:${this.#restPort}`;
    const database = `127.0.0.1:${this.#port}`;
    return {
      scope,
      name,
      restapi: { listen: rest, connect_address: rest },
      etcd3: { hosts: stores.join(',') },
      bootstrap: {
        dcs: {
          ttl: ttlSeconds,
          loop_wait: loopSeconds,
          retry_timeout: Math.floor((ttlSeconds - loopSeconds) / 2),
          postgresql: { use_pg_rewind: true, parameters: { fsync: 'off', wal_log_hints: 'on' } },
        },
        initdb: [{ encoding: 'UTF8' }, { auth: 'trust' }, 'no-sync'],
        pg_hba: ['local all all trust', 'host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
      },
      postgresql: {
        listen: database,
        connect_address: database,
        data_dir: join(this.#folder, 'data'),
        bin_dir: postgresProgram('').replace(/\/$/, ''),
        pgpass: join(this.#folder, 'pgpass'),
        authentication: {
          superuser: { username: postgresUser.name, password: 'of-a-test' },
          replication: { username: 'replicator', password: 'of-a-test' },
        },
        parameters: { unix_socket_directories: this.#folder },
      },
      watchdog: { mode: 'off' },
    };
  }
}
