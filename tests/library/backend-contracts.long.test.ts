import Database from 'libsql';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasMariadb, hasPgbouncer, hasPostgres, MariadbServer, PgBouncer, startDynalite } from '@tenure/test-support';
import { dynamodbBackend } from 'tenure/dynamodb';
import { sqliteBackend } from 'tenure/sqlite';
import { backendConformance } from 'tenure/testing';
import type { ConformanceStore } from 'tenure/testing';
import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import { describeEtcdContract } from './etcd-contract.ts';
import { makeMysqlStore } from './mysql-stores.ts';
import { PostgresStores } from './postgres-stores.ts';

/** The contract with further settings than in the backends' own tests, and with all rounds where those have few. */
const options = { framework: { describe, test, afterAll }, seed: inject('seed'), rounds: 'all' } as const;
/** The same as in the backends' own tests, with more rounds. */
const isSoak = inject('effort') === 'soak';

describe.skipIf(!hasPostgres())('postgresBackend', () => {
  let stores: PostgresStores;
  beforeAll(async () => {
    stores = await PostgresStores.start();
  });
  afterAll(() => stores.cluster.dispose());

  if (isSoak) {
    describe('direct and listening', () => {
      backendConformance(() => stores.make({ listens: true }), {
        ...options,
        hints: ['came', 'updated', 'left'],
        hooks: ['pause', 'killConnections', 'restart'],
      });
    });
  }

  describe('where serializable is the default isolation', () => {
    backendConformance(() => stores.make({ poolOptions: '-c default_transaction_isolation=serializable' }), options);
  });

  describe.skipIf(!hasPgbouncer())('behind a proxy that pools transactions', () => {
    let bouncer: PgBouncer;
    beforeAll(async () => {
      // A proxy passes no session settings on, so this one belongs to the user.
      await stores.cluster.query('CREATE ROLE strict SUPERUSER LOGIN');
      await stores.cluster.query(`ALTER ROLE strict SET default_transaction_isolation = 'repeatable read'`);
      bouncer = await PgBouncer.start(stores.cluster, 'strict', 'transaction');
    });
    afterAll(() => bouncer.stop());

    backendConformance(() => stores.make({ port: bouncer.port }), { ...options, hooks: ['killConnections'] });
  });
});

describe.skipIf(!hasMariadb())('mysqlBackend on MariaDB', () => {
  let server: MariadbServer;
  beforeAll(async () => {
    server = await MariadbServer.start();
  });
  afterAll(() => server.stop());

  if (isSoak) {
    describe('with default settings', () => {
      backendConformance(() => makeMysqlStore(server), { ...options, hooks: ['pause', 'killConnections', 'restart'] });
    });
  }

  describe('with other settings', () => {
    const settings = [
      'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE',
      `SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES', time_zone = '+09:30'`,
      'SET NAMES latin1',
    ];
    backendConformance(() => makeMysqlStore(server, settings), options);
  });
});

describeEtcdContract('etcd', 'all');
if (isSoak) describeEtcdContract('Tenure', 'all');

describe('sqliteBackend with the journal delete', () => {
  backendConformance(async (): Promise<ConformanceStore> => {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-sqlite-'));
    const databases: Database.Database[] = [];
    return {
      async open() {
        const database = new Database(join(folder, 'leases.db'));
        databases.push(database);
        database.exec('PRAGMA journal_mode = delete');
        const backend = sqliteBackend({ database });
        await backend.migrate();
        return backend;
      },
      async dispose() {
        for (const database of databases) database.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  }, options);
});

describe('dynamodbBackend', () => {
  backendConformance(async () => {
    const { client, stop } = await startDynalite();
    const open = () => dynamodbBackend({ client, table: 'leases', pollIntervalMs: 100 });
    await open().migrate();
    return { open, dispose: stop };
  }, options);
});
