import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, MariadbServer, PostgresCluster } from '@tenure/test-support';
import { DynamoDB } from '@aws-sdk/client-dynamodb';
import Libsql from 'libsql';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { createLeaseManager } from 'tenure';
import type { LeaseBackend } from 'tenure';
import { dynamodbBackend } from 'tenure/dynamodb';
import { EtcdClient, etcdBackend } from 'tenure/etcd';
import { memoryBackend } from 'tenure/memory';
import { mysqlBackend } from 'tenure/mysql';
import { postgresBackend } from 'tenure/postgres';
import { sqliteBackend } from 'tenure/sqlite';
import { MeasuredServer } from '../servers/measured-server.ts';
import { etcdKind, tenureKind } from '../servers/server-kinds.ts';
import { MeasuredProcess } from '../servers/measured-process.ts';
import { CallCounter } from './call-counter.ts';
import type { Locker, LockLibrary, LockStore } from './lock-library.ts';

const backendCalls = ['enter', 'list', 'renew', 'leave', 'update'] as const;

/** A separate backend for each client, and the function that closes it with its connections. */
interface Opened {
  readonly backend: LeaseBackend;
  readonly end: () => Promise<unknown>;
}

interface Started {
  open(counter: CallCounter): Promise<Opened>;
  stop(): Promise<unknown>;
}

function library(name: string, store: string, counted: string, start: () => Promise<Started>): LockLibrary {
  return {
    name: `tenure/${name}`,
    store,
    counted,
    async start(): Promise<LockStore> {
      const started = await start();
      const counter = new CallCounter();
      return {
        open: async ({ ttlMs }) => lockerOf(await started.open(counter), ttlMs),
        requests: async () => counter.calls,
        stop: async () => void (await started.stop()),
      };
    },
  };
}

function lockerOf({ backend, end }: Opened, ttlMs: number): Locker {
  const leases = createLeaseManager({ backend, ttlMs });
  return {
    acquire: (name) => leases.acquire(name),
    close: async () => {
      await leases[Symbol.asyncDispose]();
      await backend.close();
      await end();
    },
  };
}

async function startMemory(): Promise<Started> {
  // The in-memory backend is shared within the process.
  const backend = memoryBackend();
  return {
    open: async (counter) => {
      const view = { ...viewOf(backend), close: async () => undefined };
      counter.watch(view, backendCalls);
      return { backend: view, end: async () => undefined };
    },
    stop: () => backend.close(),
  };
}

/** The same backend as a separate object, so that it can be counted and closed separately. */
function viewOf(backend: LeaseBackend): LeaseBackend {
  const { kind, limits, pollIntervalMs } = backend;
  return {
    ...{ kind, limits, pollIntervalMs },
    enter: (claim, options) => backend.enter(claim, options),
    list: (name, signal) => backend.list(name, signal),
    renew: (renewals, signal) => backend.renew(renewals, signal),
    leave: (entry, signal) => backend.leave(entry, signal),
    update: (entry, data, signal) => backend.update(entry, data, signal),
    watch: (name, onChange) => backend.watch(name, onChange),
    close: () => backend.close(),
  };
}

async function startSqlite(): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-bench-sqlite-'));
  return {
    open: async (counter) => {
      const database = new Libsql(join(folder, 'leases.db'));
      const backend = sqliteBackend({ database });
      await backend.migrate();
      counter.watch(backend, backendCalls);
      return { backend, end: async () => database.close() };
    },
    stop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function startPostgres(listens: boolean): Promise<Started> {
  const database = await PostgresCluster.createWithDefaults();
  const connectionString = database.url();
  return {
    open: async (counter) => {
      const pool = new pg.Pool({ connectionString });
      pool.on('connect', (client) => counter.watch(client, ['query']));
      // A connection may still be closing when the database stops.
      pool.on('error', () => undefined);
      const listen = () => new pg.Client({ connectionString });
      const backend = postgresBackend({ pool, ...(listens ? { listen } : {}) });
      await backend.migrate();
      return { backend, end: () => pool.end() };
    },
    stop: () => database.dispose(),
  };
}

/** The driver's default. */
const mysqlConnections = 10;

async function startMysql(): Promise<Started> {
  const database = await MariadbServer.startWithDefaults();
  await database.query('CREATE DATABASE bench');
  return {
    open: async (counter) => {
      const pool = mysql.createPool({ ...database.options('bench'), connectionLimit: mysqlConnections });
      pool.pool.on('connection', (connection) => counter.watch(connection, ['query', 'execute']));
      const backend = mysqlBackend({ pool });
      await backend.migrate();
      return { backend, end: () => pool.end() };
    },
    stop: () => database.stop(),
  };
}

async function startEtcd(kind: typeof etcdKind): Promise<Started> {
  const server = await MeasuredServer.start(kind);
  return {
    open: async (counter) => {
      const client = new EtcdClient({ endpoints: server.address });
      counter.watch(client.kv, ['txn', 'get']);
      counter.watch(client.lease, ['grant', 'revoke', 'keepAlive']);
      return { backend: etcdBackend({ client }), end: async () => client.close() };
    },
    stop: () => server.close(),
  };
}

/** The emulator runs in a separate process, and keeps its tables in memory. */
async function startDynamo(): Promise<Started> {
  const port = await freePort();
  const program = createRequire(import.meta.url).resolve('dynalite/cli.js');
  const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
  const options = { endpoint: `http://127.0.0.1:${port}`, region: 'local', credentials };
  const connect = (): DynamoDB => new DynamoDB(options);
  const command = { program: process.execPath, args: [program, '--port', `${port}`, '--createTableMs', '0'] };
  const server = await MeasuredProcess.start(command, async () => {
    const client = connect();
    await client.listTables({});
    client.destroy();
    return true;
  });
  const first = connect();
  await dynamodbBackend({ client: first, table: 'leases' }).migrate();
  first.destroy();
  return {
    open: async (counter) => {
      const client = connect();
      counter.watch(client, ['send']);
      return { backend: dynamodbBackend({ client, table: 'leases' }), end: async () => client.destroy() };
    },
    stop: async () => void (await server.end()),
  };
}

export const tenureLibraries: readonly LockLibrary[] = [
  library('memory', 'the process itself', 'calls of the backend', startMemory),
  library('sqlite', 'a file, by libsql', 'calls of the backend', startSqlite),
  library('postgres', 'PostgreSQL', 'statements', () => startPostgres(false)),
  library('postgres with listen', 'PostgreSQL', 'statements', () => startPostgres(true)),
  library('mysql', 'MariaDB', 'statements', startMysql),
  library('etcd', 'etcd', 'requests, and messages of streams', () => startEtcd(etcdKind)),
  library('etcd', 'Tenure', 'requests, and messages of streams', () => startEtcd(tenureKind())),
  library('dynamodb', 'dynalite', 'requests', startDynamo),
];
