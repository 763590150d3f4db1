import Database from 'libsql';
import mysql from 'mysql2/promise';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasMariadb, hasPostgres, MariadbServer, PostgresCluster, startDynalite } from '@tenure/test-support';
import pg from 'pg';
import { dynamodbBackend } from 'tenure/dynamodb';
import { mysqlBackend } from 'tenure/mysql';
import { postgresBackend } from 'tenure/postgres';
import { sqliteBackend } from 'tenure/sqlite';
import { etcdServerKinds } from './etcd-servers.ts';

/** A store of leases for several processes, and the faults that it supports. */
export interface FaultStore {
  readonly port: number;
  /** The backend for `open-backend.mjs`, at a port of this store or of a proxy before it. */
  backend(port: number): object;
  /** Kills it as with kill -9 and restarts it on its data. */
  readonly restart?: () => Promise<void>;
  dispose(): Promise<void>;
}

export interface FaultStoreKind {
  readonly name: string;
  readonly isThere: () => boolean;
  /** The longest time until a waiter notices a release. */
  readonly handOverMs: number;
  /** How much longer than the TTL and one second a dead holder may block waiters. */
  readonly slackMs: number;
  /** Whether it can be killed and restarted. */
  readonly keepsItsData: boolean;
  /** Whether processes reach it over a network that can be cut. */
  readonly hasNetwork: boolean;
  readonly start: () => Promise<FaultStore>;
}

const atPort = (port: number): string => `127.0.0.1:${port}`;
const notifiedMs = 100;

export const faultStoreKinds: readonly FaultStoreKind[] = [
  ...etcdServerKinds.map(({ name, isThere, start }) => ({
    name,
    isThere,
    handOverMs: notifiedMs,
    // etcd checks for expired leases twice a second, and counts whole seconds.
    slackMs: name === 'etcd' ? 1000 : 0,
    keepsItsData: true,
    hasNetwork: true,
    start: async (): Promise<FaultStore> => {
      const server = await start();
      const port = Number(server.endpoint.split(':').at(-1));
      return {
        port,
        backend: (at) => ({ kind: 'etcd', address: atPort(at) }),
        restart: async () => {
          await server.kill();
          await server.start();
        },
        dispose: () => server.dispose(),
      };
    },
  })),
  ...[true, false].map((listens) => ({
    name: listens ? 'PostgreSQL with listen' : 'PostgreSQL',
    isThere: hasPostgres,
    handOverMs: listens ? notifiedMs : 600,
    slackMs: 0,
    keepsItsData: true,
    hasNetwork: true,
    start: () => startPostgres(listens),
  })),
  {
    name: 'MariaDB',
    isThere: hasMariadb,
    handOverMs: 600,
    slackMs: 0,
    keepsItsData: true,
    hasNetwork: true,
    start: startMariadb,
  },
  {
    name: 'SQLite',
    isThere: () => true,
    handOverMs: 300,
    slackMs: 0,
    keepsItsData: false,
    hasNetwork: false,
    start: startSqlite,
  },
  {
    name: 'DynamoDB',
    isThere: () => true,
    handOverMs: 350,
    slackMs: 500,
    keepsItsData: false,
    hasNetwork: true,
    start: startDynamo,
  },
];

async function startPostgres(listens: boolean): Promise<FaultStore> {
  const cluster = await PostgresCluster.create();
  const pool = new pg.Pool({ connectionString: cluster.url() });
  await postgresBackend({ pool }).migrate();
  await pool.end();
  return {
    port: cluster.port,
    backend: (port) => ({
      kind: 'postgres',
      address: cluster.url().replace(`:${cluster.port}/`, `:${port}/`),
      listens,
    }),
    restart: async () => {
      await cluster.stop('immediate');
      await cluster.start();
    },
    dispose: () => cluster.dispose(),
  };
}

async function startMariadb(): Promise<FaultStore> {
  const server = await MariadbServer.start();
  await server.query('CREATE DATABASE leases');
  const pool = mysql.createPool(server.options('leases'));
  await mysqlBackend({ pool }).migrate();
  await pool.end();
  return {
    port: server.port,
    backend: (port) => ({ kind: 'mysql', options: server.options('leases', 'app', port) }),
    restart: () => server.restart(),
    dispose: () => server.stop(),
  };
}

async function startSqlite(): Promise<FaultStore> {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-holds-'));
  const path = join(folder, 'leases.db');
  const database = new Database(path);
  await sqliteBackend({ database }).migrate();
  database.close();
  return {
    port: 0,
    backend: () => ({ kind: 'sqlite', path }),
    dispose: async () => rmSync(folder, { recursive: true }),
  };
}

async function startDynamo(): Promise<FaultStore> {
  const { client, port, stop } = await startDynalite();
  await dynamodbBackend({ client, table: 'leases' }).migrate();
  return { port, backend: (at) => ({ kind: 'dynamodb', address: atPort(at) }), dispose: stop };
}
