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
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { leaseSchemaScript } from '../../packages/client/src/mysql/lease-schema.ts';
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
    test('can be called by many processes at once, repeatedly, and by users that may create nothing', async () => {
      const pools = Array.from({ length: 6 }, () => mysql.createPool(server.options('at_once')));
      for (let round = 0; round < 3; round++) {
        await server.query('DROP DATABASE IF EXISTS at_once; CREATE DATABASE at_once');
        await Promise.all(pools.map((pool) => mysqlBackend({ pool }).migrate()));
      }
      await server.query(`CREATE USER worker@'%';
        GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON at_once.* TO worker@'%'`);
      await withBackend({ database: 'at_once', as: 'worker' }, async (backend) => {
        await backend.migrate();
        expect((await backend.enter(claim('job'), { onlyIfHolds: true, signal })).sequence).toBe(1n);
      });
      await Promise.all(pools.map((pool) => pool.end()));
    });

    test('runs the same SQL as the file in the package', async () => {
      const file = new URL('../../packages/client/sql/mysql/0001-leases.sql', import.meta.url);
      const text = readFileSync(file, 'utf8');
      expect(text.endsWith(`\n\n${leaseSchemaScript}`), 'copy the text of lease-schema.ts into the file').toBe(true);
      await server.query('CREATE DATABASE by_file');
      const address = ['--no-defaults', '-h', '127.0.0.1', '-P', `${server.port}`, '-u', 'app', 'by_file'];
      for (let times = 0; times < 2; times++) execFileSync('mariadb', address, { input: text });
      await withBackend({ database: 'by_file' }, async (backend) => {
        expect((await backend.enter(claim('job'), { onlyIfHolds: true, signal })).sequence).toBe(1n);
        await backend.migrate();
        expect((await backend.list('job', signal)).length).toBe(1);
      });
    });
  });

  describe('errors report what to do', () => {
    const cases: readonly (readonly [string, BackendErrorCode, RegExp, BackendPlace])[] = [
      ['tables are missing', 'not-migrated', /backend\.migrate\(\)/, { database: 'mysql' }],
      ['rights are missing', 'misconfigured', /rights/, { database: 'again', as: 'stranger' }],
      ['the user is unknown', 'misconfigured', /rights/, { database: 'again', as: 'unknown_user' }],
      ['the database is unknown', 'misconfigured', /does not exist/, { database: 'nowhere' }],
      ['no database is named', 'misconfigured', /names no database/, {}],
      ['no server answers', 'unavailable', /ECONNREFUSED/, { database: 'again', port: 1 }],
    ];

    for (const [what, code, words, place] of cases) {
      test(`when ${what}`, async () => {
        await server.query(`CREATE USER IF NOT EXISTS stranger@'%'; GRANT CREATE ON again.* TO stranger@'%'`);
        await withBackend(place, async (backend) => {
          const key = { name: 'job', id: 'id', sequence: 1n };
          for (const call of [
            () => backend.enter(claim('job'), { onlyIfHolds: false, signal }),
            () => backend.renew([{ ...key, ttlMs: 1_000 }], signal),
            () => backend.leave(key, signal),
          ]) {
            const error = await call().catch((cause: unknown) => cause);
            expect(error).toBeInstanceOf(BackendError);
            expect(error).toMatchObject({ backendCode: code, message: expect.stringMatching(words) });
            expect(error).toHaveProperty('cause', expect.anything());
          }
        });
      });
    }

    test('when the server is read-only', async () => {
      await server.query(`CREATE USER IF NOT EXISTS reader@'%'; GRANT ALL ON again.* TO reader@'%'`);
      await server.query('SET GLOBAL read_only = 1');
      try {
        await withBackend({ database: 'again', as: 'reader' }, async (backend) => {
          const entering = backend.enter(claim('job'), { onlyIfHolds: false, signal });
          await expect(entering).rejects.toMatchObject({
            backendCode: 'unavailable',
            message: expect.stringMatching(/primary/),
          });
        });
      } finally {
        await server.query('SET GLOBAL read_only = 0');
      }
    });

    test('when autocommit is off: an answered renewal would be rolled back', async () => {
      const pool = mysql.createPool(server.options('again'));
      pool.pool.on('connection', (connection) => void connection.query('SET autocommit = 0'));
      const backend = mysqlBackend({ pool });
      for (const call of [
        () => backend.enter(claim('job'), { onlyIfHolds: false, signal }),
        () => backend.renew([{ name: 'job', id: 'id', sequence: 1n, ttlMs: 1_000 }], signal),
        () => backend.migrate(),
      ]) {
        await expect(call()).rejects.toMatchObject({
          backendCode: 'misconfigured',
          message: expect.stringMatching(/autocommit/),
        });
      }
      await pool.end();
    });

    test('when the pool was ended', async () => {
      const pool = mysql.createPool(server.options('again'));
      await pool.end();
      await expect(mysqlBackend({ pool }).list('job', signal)).rejects.toMatchObject({ backendCode: 'closed' });
    });

    test('when the options are invalid', async () => {
      const pool = mysql.createPool(server.options('again'));
      const callbacks = callbackMysql.createPool(server.options('again'));
      for (const options of [{ pool: undefined }, { pool: callbacks }, { pool, pollIntervalMs: -1 }]) {
        expect(() => mysqlBackend(options as unknown as { pool: mysql.Pool })).toThrow(UsageError);
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
