import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { hasPostgres, type PostgresCluster } from '@tenure/test-support';
import { Client, Pool } from 'pg';
import { BackendError, UsageError } from 'tenure';
import type { BackendErrorCode, Claim } from 'tenure';
import { postgresBackend } from 'tenure/postgres';
import type { PostgresBackend, PostgresBackendOptions } from 'tenure/postgres';
import { backendConformance } from 'tenure/testing';
import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import { lineSchemaSql, migrationLockSql } from '../../packages/client/src/postgres/line-schema.ts';
import { makePool, PostgresStores } from './postgres-stores.ts';

const signal = new AbortController().signal;
const textOid = 25;
const processDeadlineMs = 50_000;

const claim = (name: string, parts: Partial<Claim> = {}): Claim => {
  const id = crypto.randomUUID();
  return { name, id, holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 60_000, data: '', ...parts };
};

describe.skipIf(!hasPostgres())('postgresBackend', () => {
  let stores: PostgresStores;
  let server: PostgresCluster;

  beforeAll(async () => {
    stores = await PostgresStores.start();
    server = stores.cluster;
    await withBackend({ schema: 'again' }, (backend) => backend.migrate());
  });
  afterAll(() => server.dispose());

  // `backend-contracts.long.test.ts` has the same with other settings and behind a proxy.
  backendConformance(() => stores.make({ listens: true }), {
    framework: { describe, test, afterAll },
    hints: ['came', 'updated', 'left'],
    hooks: ['pause', 'killConnections', 'restart'],
    seed: inject('seed'),
    rounds: 'few',
  });

  describe('migrate', () => {
    test('can be called by many processes at once, again, and by those who may create nothing', async () => {
      const pools = Array.from({ length: 8 }, () => makePool(server.url()));
      const schema = 'at_once';
      for (let round = 0; round < 3; round++) {
        await server.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
        await Promise.all(pools.map((pool) => postgresBackend({ pool, schema }).migrate()));
      }
      await server.query(`CREATE ROLE worker LOGIN;
        GRANT USAGE ON SCHEMA ${schema} TO worker;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO worker`);
      const worker = makePool(stores.url(server.port, 'worker'));
      const backend = postgresBackend({ pool: worker, schema });
      await backend.migrate();
      const { ticket } = await backend.enter(claim('job'), { onlyIfHolds: true, signal });
      assert.equal(ticket, 1n);
      await Promise.all([...pools, worker].map((pool) => pool.end()));
    });

    test('runs the same SQL as the file in the package', async () => {
      const text = readFileSync(new URL('../../packages/client/sql/postgres/0001-leases.sql', import.meta.url), 'utf8');
      for (let times = 0; times < 2; times++) await server.query(text);
      await withBackend({}, async (backend) => {
        assert.equal((await backend.enter(claim('job'), { onlyIfHolds: true, signal })).ticket, 1n);
        await backend.migrate();
        assert.equal((await backend.list('job', signal)).length, 1);
      });
      assert.ok(
        text.endsWith(`\n\n${migrationLockSql}\n\n${lineSchemaSql}\nCOMMIT;\n`),
        'copy the text of line-schema.ts into the file',
      );
    });
  });

  test('a transaction that the database rolls back in favour of others is done again', async () => {
    const options = '-c default_transaction_isolation=serializable';
    await withBackend({ schema: 'again', poolOptions: options }, async (backend) => {
      const first = await backend.enter(claim('job'), { onlyIfHolds: false, signal });
      const other = new Client({ connectionString: server.url() });
      await other.connect();
      await other.query('BEGIN; UPDATE again.tenure_lines SET last_ticket = last_ticket + 5');
      const entering = backend.enter(claim('job'), { onlyIfHolds: false, signal });
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%tenure_enter%'`;
      while ((await server.query(waiting)).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
      await other.query('COMMIT');
      assert.equal((await entering).ticket, (first.ticket ?? 0n) + 6n);
      await other.end();
    });
  });

  test('a watch that is left open keeps no process alive', async () => {
    const program = fileURLToPath(new URL('postgres-listener.mjs', import.meta.url));
    // It hints once when it stands, and then nothing is left to do.
    const { stdout } = await promisify(execFile)(process.execPath, [program, server.url(), 'again'], {
      timeout: processDeadlineMs,
    });
    assert.equal(stdout, 'hinted\n');
  });

  test('what pg makes of numbers does not matter', async () => {
    const pool = new Pool({
      connectionString: server.url(),
      types: { getTypeParser: (oid: number) => (oid === textOid ? String : Boolean) },
    });
    const backend = postgresBackend({ pool, schema: 'again' });
    const { entries } = await backend.enter(claim('numbers'), { onlyIfHolds: false, signal }).finally(() => pool.end());
    const [entry] = entries;
    assert.equal(typeof entry?.ticket, 'bigint');
    assert.equal(entry?.ttlMs, 60_000);
  });

  describe('errors say what to do', () => {
    const cases: readonly (readonly [string, BackendErrorCode, RegExp, () => Parameters<typeof withBackend>[0]])[] = [
      ['tables are missing', 'not-migrated', /backend\.migrate\(\)/, () => ({ schema: 'nowhere' })],
      ['rights are missing', 'misconfigured', /grant the user/, () => ({ schema: 'again', as: 'stranger' })],
      ['the user is unknown', 'misconfigured', /user and a password/, () => ({ as: 'nobody' })],
      ['the server only reads', 'unavailable', /primary/, () => ({ poolOptions: readOnly })],
      ['nothing answers there', 'unavailable', /ECONNREFUSED/, () => ({ port: 1 })],
    ];
    const readOnly = '-c default_transaction_read_only=on';

    for (const [what, code, words, options] of cases) {
      test(`when ${what}`, async () => {
        await server.query('DROP ROLE IF EXISTS stranger');
        await server.query('CREATE ROLE stranger LOGIN');
        await withBackend(options(), async (backend) => {
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

    test('when the pool was ended', async () => {
      const pool = makePool(server.url());
      await pool.end();
      await assert.rejects(postgresBackend({ pool }).list('job', signal), { backendCode: 'closed' });
    });

    test('when the options cannot be right', () => {
      const pool = makePool(server.url());
      for (const [options, words] of [
        [{ pool: undefined }, /Pool of pg/],
        [{ pool: new Client(server.url()) }, /Pool of pg/],
        [{ pool, listen: new Client(server.url()) }, /listen makes a client/],
        [{ pool, pollIntervalMs: 0 }, /pollIntervalMs/],
        [{ pool, schema: '' }, /schema/],
      ] as const) {
        assert.throws(
          () => postgresBackend(options as unknown as PostgresBackendOptions),
          (error) => error instanceof UsageError && words.test(error.message),
        );
      }
    });
  });

  interface BackendPlace {
    readonly schema?: string;
    readonly poolOptions?: string;
    readonly as?: string;
    readonly port?: number;
  }

  async function withBackend(place: BackendPlace, work: (backend: PostgresBackend) => Promise<void>): Promise<void> {
    const pool = makePool(stores.url(place.port, place.as), place.poolOptions);
    const backend = postgresBackend({ pool, schema: place.schema ?? 'public' });
    await work(backend).finally(() => Promise.all([backend.close(), pool.end()]));
  }
});
