import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { hasPostgres, type PostgresCluster } from '@tenure/test-support';
import { Client, Pool } from 'pg';
import { BackendError } from 'tenure';
import type { BackendErrorCode, Claim } from 'tenure';
import { postgresBackend } from 'tenure/postgres';
import type { PostgresBackend, PostgresBackendOptions } from 'tenure/postgres';
import { backendConformance } from 'tenure/testing';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { leaseSchemaSql, migrationLockSql } from '../../packages/client/src/postgres/lease-schema.ts';
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
    test('can be called by many processes at once, repeatedly, and by users that may create nothing', async () => {
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
      const { sequence } = await backend.enter(claim('job'), { onlyIfHolds: true, signal });
      expect(sequence).toBe(1n);
      await Promise.all([...pools, worker].map((pool) => pool.end()));
    });

    test('runs the same SQL as the file in the package', async () => {
      const text = readFileSync(new URL('../../packages/client/sql/postgres/0001-leases.sql', import.meta.url), 'utf8');
      for (let times = 0; times < 2; times++) await server.query(text);
      await withBackend({}, async (backend) => {
        expect((await backend.enter(claim('job'), { onlyIfHolds: true, signal })).sequence).toBe(1n);
        await backend.migrate();
        expect((await backend.list('job', signal)).length).toBe(1);
      });
      expect(
        text.endsWith(`\n\n${migrationLockSql}\n\n${leaseSchemaSql}\nCOMMIT;\n`),
        'copy the text of lease-schema.ts into the file',
      ).toBe(true);
    });
  });

  test('a transaction that the database rolls back in favour of others is retried', async () => {
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
      expect((await entering).sequence).toBe((first.sequence ?? 0n) + 6n);
      await other.end();
    });
  });

  test('an open watch does not keep the process alive', async () => {
    const program = fileURLToPath(new URL('postgres-listener.mjs', import.meta.url));
    // The watch hints once when it is established, and then the process has no work left.
    const { stdout } = await promisify(execFile)(process.execPath, [program, server.url(), 'again'], {
      timeout: processDeadlineMs,
    });
    expect(stdout).toBe('hinted\n');
  });

  test('type parsers of pg do not matter', async () => {
    const pool = new Pool({
      connectionString: server.url(),
      types: { getTypeParser: (oid: number) => (oid === textOid ? String : Boolean) },
    });
    const backend = postgresBackend({ pool, schema: 'again' });
    const { entries } = await backend.enter(claim('numbers'), { onlyIfHolds: false, signal }).finally(() => pool.end());
    const [entry] = entries;
    expect(typeof entry?.sequence).toBe('bigint');
    expect(entry?.ttlMs).toBe(60_000);
  });

  describe('errors report what to do', () => {
    const cases: readonly (readonly [string, BackendErrorCode, RegExp, () => Parameters<typeof withBackend>[0]])[] = [
      ['tables are missing', 'not-migrated', /backend\.migrate\(\)/, () => ({ schema: 'nowhere' })],
      ['rights are missing', 'misconfigured', /grant the user/, () => ({ schema: 'again', as: 'stranger' })],
      ['the user is unknown', 'misconfigured', /user and a password/, () => ({ as: 'unknown_user' })],
      ['the server is read-only', 'unavailable', /primary/, () => ({ poolOptions: readOnly })],
      ['no server answers', 'unavailable', /ECONNREFUSED/, () => ({ port: 1 })],
    ];
    const readOnly = '-c default_transaction_read_only=on';

    for (const [what, code, words, options] of cases) {
      test(`when ${what}`, async () => {
        await server.query('DROP ROLE IF EXISTS stranger');
        await server.query('CREATE ROLE stranger LOGIN');
        await withBackend(options(), async (backend) => {
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

    test('when the pool was ended', async () => {
      const pool = makePool(server.url());
      await pool.end();
      await expect(postgresBackend({ pool }).list('job', signal)).rejects.toMatchObject({ backendCode: 'closed' });
    });

    test('when the options are invalid', () => {
      const pool = makePool(server.url());
      for (const [options, words] of [
        [{ pool: undefined }, /Pool of pg/],
        [{ pool: new Client(server.url()) }, /Pool of pg/],
        [{ pool, listen: new Client(server.url()) }, /listen must be a function/],
        [{ pool, pollIntervalMs: 0 }, /pollIntervalMs/],
        [{ pool, schema: '' }, /schema/],
      ] as const) {
        expect(() => postgresBackend(options as unknown as PostgresBackendOptions)).toThrow(
          expect.objectContaining({ name: 'UsageError', message: expect.stringMatching(words) }),
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
