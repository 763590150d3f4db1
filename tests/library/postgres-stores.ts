import { CuttingProxy, PostgresCluster, postgresUser } from '@tenure/test-support';
import { Client, Pool } from 'pg';
import { postgresBackend } from 'tenure/postgres';
import type { PostgresBackend } from 'tenure/postgres';
import type { ConformanceStore } from 'tenure/testing';

/** The connections of the tests: three backends with a pool each, in two stores, and those of the tests themselves. */
const maxConnections = 80;

export interface PostgresStoreOptions {
  /** The options of every session, in the syntax of libpq. */
  readonly poolOptions?: string;
  readonly listens?: boolean;
  /** The port of a proxy before the server; by default that of the server. */
  readonly port?: number;
}

/** A PostgreSQL for the library's backend, with stores in it for the contract suite. */
export class PostgresStores {
  readonly cluster: PostgresCluster;
  #schemas = 0;

  private constructor(cluster: PostgresCluster) {
    this.cluster = cluster;
  }

  static async start(): Promise<PostgresStores> {
    return new PostgresStores(await PostgresCluster.create({ max_connections: `${maxConnections}` }));
  }

  url(port = this.cluster.port, as = postgresUser.name): string {
    const url = new URL(this.cluster.url('postgres', as));
    url.port = `${port}`;
    return url.href;
  }

  /** Separate tables behind their own proxy; every backend has a pool, as every process has. */
  async make({ poolOptions = '', listens = false, port = this.cluster.port }: PostgresStoreOptions = {}) {
    const proxy = await CuttingProxy.before(port);
    const url = this.url(proxy.port);
    const schema = `Store "${(this.#schemas += 1)}"`;
    const pools: Pool[] = [];
    const open = async (): Promise<PostgresBackend> => {
      const pool = makePool(url, poolOptions);
      pools.push(pool);
      const listen = (): Client => new Client({ connectionString: url });
      const backend = postgresBackend({ pool, schema, ...(listens ? { listen } : {}) });
      await backend.migrate();
      return backend;
    };
    const store: ConformanceStore = {
      open,
      restart: async () => {
        await this.cluster.stop('immediate');
        await this.cluster.start();
      },
      killConnections: async () => proxy.cut(),
      pause: async () => {
        const resume = proxy.pause();
        return async () => resume();
      },
      async dispose() {
        await Promise.all(pools.map((pool) => pool.end()));
        await proxy.close();
      },
    };
    return store;
  }
}

export function makePool(connectionString: string, options = ''): Pool {
  const pool = new Pool({ connectionString, max: 5, ...(options === '' ? {} : { options }) });
  pool.on('error', () => undefined);
  return pool;
}
