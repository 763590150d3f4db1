import { CuttingProxy, type MariadbServer } from '@tenure/test-support';
import mysql from 'mysql2/promise';
import { mysqlBackend } from 'tenure/mysql';
import type { ConformanceStore } from 'tenure/testing';

let databases = 0;

/** A separate database behind its own proxy; every backend has a pool, as every process has. */
export async function makeMysqlStore(
  server: MariadbServer,
  sessionSettings: readonly string[] = [],
): Promise<ConformanceStore> {
  const proxy = await CuttingProxy.before(server.port);
  const database = `store_${(databases += 1)}`;
  await server.query(`CREATE DATABASE ${database} CHARACTER SET latin1`);
  const pools: mysql.Pool[] = [];
  return {
    async open() {
      const pool = mysql.createPool(server.options(database, 'app', proxy.port));
      pool.pool.on('connection', (connection) => {
        for (const setting of sessionSettings) void connection.query(setting);
      });
      pools.push(pool);
      const backend = mysqlBackend({ pool });
      await backend.migrate();
      return backend;
    },
    restart: () => server.restart(),
    killConnections: async () => proxy.cut(),
    pause: async () => {
      const resume = proxy.pause();
      return async () => resume();
    },
    async dispose() {
      await Promise.all(pools.map((pool) => pool.end().catch(() => undefined)));
      await proxy.close();
    },
  };
}
