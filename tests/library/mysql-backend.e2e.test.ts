import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { hasMariadb, MariadbServer } from '@tenure/test-support';
import callbackMysql from 'mysql2';
import mysql from 'mysql2/promise';
import { BackendError, UsageError } from 'tenure';
import type { BackendErrorCode, Claim } from 'tenure';
import { mysqlBackend } from 'tenure/mysql';
import type { MysqlBackend } from 'tenure/mysql';
import { backendConformance } from 'tenure/testing';
import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import { lineSchemaScript } from '../../packages/client/src/mysql/line-schema.ts';
import { makeMysqlStore } from './mysql-stores.ts';

const signal = new AbortController().signal;

const claim = (name: string): Claim => {
  return { name, id: 'id', holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 60_000, data: '' };
};

describe.skipIf(!hasMariadb())('mysqlBackend on MariaDB', () => {
  let server: MariadbServer;

  beforeAll(async () => {
    server = await MariadbServer.start();
    await server.query('CREATE DATABASE again');
    await withBackend({ database: 'again' }, (backend) => backend.migrate());
  });
  afterAll(() => server.stop());

  // `backend-contracts.long.test.ts` has the same with other settings.
  backendConformance(() => makeMysqlStore(server), {
    framework: { describe, test, afterAll },
    hooks: ['pause', 'killConnections', 'restart'],
    seed: inject('seed'),
    rounds: 'few',
  });

  describe('migrate', () => {
    test('can be called by many processes at once, again, and by those who may create nothing', async () => {
      const pools = Array.from({ length: 6 }, () => mysql.createPool(server.options('at_once')));
      for (let round = 0; round < 3; round++) {
        await server.query('DROP DATABASE IF EXISTS at_once; CREATE DATABASE at_once');
        await Promise.all(pools.map((pool) => mysqlBackend({ pool }).migrate()));
      }
      await server.query(`CREATE USER worker@'%';
        GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON at_once.* TO worker@'%'`);
      await withBackend({ database: 'at_once', as: 'worker' }, async (backend) => {
        await backend.migrate();
        assert.equal((await backend.enter(claim('job'), { onlyIfHolds: true, signal })).ticket, 1n);
      });
      await Promise.all(pools.map((pool) => pool.end()));
    });

    test('runs the same SQL as the file in the package', async () => {
      const file = new URL('../../packages/client/sql/mysql/0001-leases.sql', import.meta.url);
      const text = readFileSync(file, 'utf8');
      assert.ok(text.endsWith(`\n\n${lineSchemaScript}`), 'copy the text of line-schema.ts into the file');
      await server.query('CREATE DATABASE by_file');
      const address = ['--no-defaults', '-h', '127.0.0.1', '-P', `${server.port}`, '-u', 'app', 'by_file'];
      for (let times = 0; times < 2; times++) execFileSync('mariadb', address, { input: text });
      await withBackend({ database: 'by_file' }, async (backend) => {
        assert.equal((await backend.enter(claim('job'), { onlyIfHolds: true, signal })).ticket, 1n);
        await backend.migrate();
        assert.equal((await backend.list('job', signal)).length, 1);
      });
    });
  });

  describe('errors say what to do', () => {
    const cases: readonly (readonly [string, BackendErrorCode, RegExp, BackendPlace])[] = [
      ['tables are missing', 'not-migrated', /backend\.migrate\(\)/, { database: 'mysql' }],
      ['rights are missing', 'misconfigured', /rights/, { database: 'again', as: 'stranger' }],
      ['the user is unknown', 'misconfigured', /rights/, { database: 'again', as: 'nobody' }],
      ['the database is unknown', 'misconfigured', /does not exist/, { database: 'nowhere' }],
      ['no database is named', 'misconfigured', /names no database/, {}],
      ['nothing answers there', 'unavailable', /ECONNREFUSED/, { database: 'again', port: 1 }],
    ];

    for (const [what, code, words, place] of cases) {
      test(`when ${what}`, async () => {
        await server.query(`CREATE USER IF NOT EXISTS stranger@'%'; GRANT CREATE ON again.* TO stranger@'%'`);
        await withBackend(place, async (backend) => {
          const key = { name: 'job', id: 'id', ticket: 1n };
          for (const call of [
            () => backend.enter(claim('job'), { onlyIfHolds: false, signal }),
            () => backend.renew([{ ...key, ttlMs: 1_000 }], signal),
            () => backend.leave(key, signal),
          ]) {
            await assert.rejects(call(), (error) => {
              assert.ok(error instanceof BackendError, String(error));
              assert.match(error.message, words);
              return error.backendCode === code && error.cause !== undefined;
            });
          }
        });
      });
    }

    test('when the server only reads', async () => {
      await server.query(`CREATE USER IF NOT EXISTS reader@'%'; GRANT ALL ON again.* TO reader@'%'`);
      await server.query('SET GLOBAL read_only = 1');
      try {
        await withBackend({ database: 'again', as: 'reader' }, async (backend) => {
          const entering = backend.enter(claim('job'), { onlyIfHolds: false, signal });
          await assert.rejects(entering, { backendCode: 'unavailable', message: /primary/ });
        });
      } finally {
        await server.query('SET GLOBAL read_only = 0');
      }
    });

    test('when nothing is committed by itself: a renewal that was answered would be undone', async () => {
      const pool = mysql.createPool(server.options('again'));
      pool.pool.on('connection', (connection) => void connection.query('SET autocommit = 0'));
      const backend = mysqlBackend({ pool });
      for (const call of [
        () => backend.enter(claim('job'), { onlyIfHolds: false, signal }),
        () => backend.renew([{ name: 'job', id: 'id', ticket: 1n, ttlMs: 1_000 }], signal),
        () => backend.migrate(),
      ]) {
        await assert.rejects(call(), { backendCode: 'misconfigured', message: /autocommit/ });
      }
      await pool.end();
    });

    test('when the pool was ended', async () => {
      const pool = mysql.createPool(server.options('again'));
      await pool.end();
      await assert.rejects(mysqlBackend({ pool }).list('job', signal), { backendCode: 'closed' });
    });

    test('when the options cannot be right', async () => {
      const pool = mysql.createPool(server.options('again'));
      const callbacks = callbackMysql.createPool(server.options('again'));
      for (const options of [{ pool: undefined }, { pool: callbacks }, { pool, pollIntervalMs: -1 }]) {
        assert.throws(() => mysqlBackend(options as unknown as { pool: mysql.Pool }), UsageError);
      }
      await pool.end();
      await callbacks.promise().end();
    });
  });

  interface BackendPlace {
    readonly database?: string;
    readonly as?: string;
    readonly port?: number;
  }

  async function withBackend(place: BackendPlace, work: (backend: MysqlBackend) => Promise<void>): Promise<void> {
    const pool = mysql.createPool(server.options(place.database, place.as, place.port));
    const backend = mysqlBackend({ pool });
    await work(backend).finally(() => Promise.all([backend.close(), pool.end()]));
  }
});
