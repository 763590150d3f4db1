import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd, hasMariadb, hasPostgres, MariadbServer, PostgresDatabase } from '@tenure/test-support';
import Database from 'libsql';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { BackendError } from 'tenure';
import type { Claim, LeaseBackend } from 'tenure';
import { etcdBackend, EtcdClient, EtcdError, operation } from 'tenure/etcd';
import type { EtcdErrorCode } from 'tenure/etcd';
import { mysqlBackend } from 'tenure/mysql';
import { postgresBackend } from 'tenure/postgres';
import { sqliteBackend } from 'tenure/sqlite';
import { describe, test } from 'vitest';
import { etcdServerKinds } from './etcd-servers.ts';

/** All others say for certain that nothing was done. */
const unsure: readonly EtcdErrorCode[] = ['ambiguous', 'unreachable'];

async function codeOf(call: Promise<unknown>): Promise<EtcdErrorCode | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    assert.ok(error instanceof EtcdError, String(error));
    return error.etcdCode;
  }
}

describe.skipIf(!hasEtcd())('etcd at its quota', () => {
  const value = 'x'.repeat(16 * 1024);
  const burst = 50;
  const burstsMax = 40;
  /** It is a matter of milliseconds whether etcd does what it then refuses: mostly it does within two of them. */
  const serversMax = 3;

  /** How many calls that failed had their effect. */
  async function checkWhileFilling(): Promise<number> {
    const server = await EtcdProcess.start('--quota-backend-bytes', `${1024 * 1024}`);
    await using client = new EtcdClient({ endpoints: server.endpoint });
    try {
      let done = 0;
      let failed = 0;
      for (let turn = 0; turn < burstsMax && failed === 0; turn++) {
        const calls = Array.from({ length: burst }, async (_, at) => {
          const id = BigInt(turn * burst + at + 1);
          const [put, txn] = [`put/${id}`, `txn/${id}`];
          const attempts = [
            [() => client.kv.put(put, value), async () => (await client.kv.getOne(put)) !== undefined],
            [
              () => client.kv.txn().do(operation.put(txn, value)).commit(),
              async () => (await client.kv.getOne(txn)) !== undefined,
            ],
            [
              () => client.lease.grant({ ttlMs: 60_000, id }),
              async () => (await client.lease.timeToLive(id)) !== undefined,
            ],
          ] as const;
          for (const [call, isDone] of attempts) {
            const code = await codeOf(call());
            if (code === undefined) continue;
            failed++;
            if (!(await isDone())) continue;
            done++;
            assert.ok(unsure.includes(code), `${code}, and yet it was done`);
          }
        });
        await Promise.all(calls);
      }
      assert.ok(failed > 0, 'the quota was never met');
      return done;
    } finally {
      await server.dispose();
    }
  }

  test('no error says that nothing was done when it was', async () => {
    for (let servers = 0; servers < serversMax && (await checkWhileFilling()) === 0; servers++);
  });
});

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))('what $name refuses', (kind) => {
  test('was not done, where the error says so', async () => {
    const server = await kind.start();
    await using client = new EtcdClient({ endpoints: server.endpoint });
    try {
      const { kv, lease } = client;
      await lease.grant({ ttlMs: 60_000, id: 7n });
      const before = await kv.put('before', '1');
      const first = operation.put('first', '1');
      const puts = Array.from({ length: 129 }, (_, at) => operation.put(`many/${at}`, '1'));
      const future = operation.get('before', { revision: before.revision + 1_000n });
      const refused: readonly (readonly [Promise<unknown>, EtcdErrorCode])[] = [
        [kv.put('large', 'x'.repeat(2_000_000)), 'invalid'],
        [kv.put('leased', '1', { lease: 404n }), 'not-found'],
        [
          kv
            .txn()
            .do(...puts)
            .commit(),
          'invalid',
        ],
        [kv.txn().do(first, operation.put('first', '2')).commit(), 'invalid'],
        [
          kv
            .txn()
            .do(first, operation.put('second', '1', { lease: 404n }))
            .commit(),
          'not-found',
        ],
        [kv.txn().do(first, future).commit(), 'invalid'],
        [lease.grant({ ttlMs: 90_000, id: 7n }), 'invalid'],
      ];
      const codes = await Promise.all(refused.map(([call]) => codeOf(call)));
      assert.deepEqual(
        codes,
        refused.map(([, code]) => code),
      );
      const { kvs, revision } = await kv.get({ prefix: '' });
      assert.deepEqual([kvs.map(({ key }) => key), revision], [['before'], before.revision]);
      assert.equal((await lease.timeToLive(7n))?.grantedMs, 60_000);
    } finally {
      await server.dispose();
    }
  });
});

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))(
  'a line in $name with a key of somebody else',
  (kind) => {
    test('is refused to who would enter it, and nothing is left in it', async () => {
      const server = await kind.start();
      await using client = new EtcdClient({ endpoints: server.endpoint });
      try {
        await client.kv.put('tenure/lease/job/foreign', 'hello');
        const backend = etcdBackend({ client });
        const entering = backend.enter({ ...claim, name: 'lease/job' }, { onlyIfHolds: false, signal });
        await assert.rejects(entering, { backendCode: 'misconfigured' });
        const { kvs } = await client.kv.get({ prefix: 'tenure/' });
        assert.deepEqual(
          kvs.map(({ key }) => key),
          ['tenure/lease/job/foreign'],
        );
      } finally {
        await server.dispose();
      }
    });
  },
);

const { signal } = new AbortController();
const claim: Claim = { name: 'n', id: 'i', holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 60_000, data: '' };
/** Random, so that nothing packs it. */
const longName = Array.from({ length: 2_000 }, () => Math.random().toString(36).slice(2)).join('');

/** Whatever a program that goes around the manager may get wrong. */
const wrongClaims: readonly (readonly [string, Partial<Claim>])[] = [
  ['a mode that does not exist', { mode: 'bogus' as Claim['mode'] }],
  ['a name that is too long', { name: longName }],
  ['a character 0', { holder: 'a\0b' }],
  ['too many permits', { permits: 2 ** 40 }],
  ['a time beyond all dates', { ttlMs: 2 ** 52 }],
  ['an id that is too long', { id: longName }],
  ['too much data', { data: 'x'.repeat(9_000_000) }],
];

/** `rows` shows all that the backend keeps. What is not refused is taken, or nobody knows. */
async function refuse(backend: LeaseBackend, rows: () => Promise<unknown>): Promise<void> {
  await backend.enter({ ...claim, name: 'before', id: 'before' }, { onlyIfHolds: false, signal });
  const codes: Record<string, string> = {};
  for (const [what, wrong] of wrongClaims) {
    const before = await rows();
    try {
      await backend.enter({ ...claim, ...wrong }, { onlyIfHolds: false, signal });
      await backend.leave({ ...claim, ...wrong, ticket: 0n }, signal);
      codes[what] = 'taken';
    } catch (error) {
      assert.ok(error instanceof BackendError, String(error));
      codes[what] = error.backendCode;
      if (error.backendCode === 'unavailable') continue;
      assert.deepEqual(await rows(), before, `${what}: ${error.message}`);
    }
  }
  assert.ok(Object.values(codes).filter((code) => code === 'refused').length >= 2, JSON.stringify(codes));
}

test.skipIf(!hasPostgres())('what PostgreSQL refuses was not done', async () => {
  const database = await PostgresDatabase.create();
  const pool = new pg.Pool({ connectionString: database.url() });
  try {
    const backend = postgresBackend({ pool });
    await backend.migrate();
    const text = `SELECT (SELECT json_agg(l) FROM tenure_lines l) AS lines, (SELECT json_agg(e) FROM tenure_entries e)`;
    await refuse(backend, async () => (await pool.query(text)).rows);
  } finally {
    await pool.end();
    await database.dispose();
  }
});

test.skipIf(!hasMariadb())('what MariaDB refuses was not done', async () => {
  const server = await MariadbServer.start();
  await server.query('CREATE DATABASE refusals');
  const pool = mysql.createPool(server.options('refusals'));
  try {
    const backend = mysqlBackend({ pool });
    await backend.migrate();
    const text = 'SELECT * FROM refusals.tenure_lines; SELECT * FROM refusals.tenure_entries';
    await refuse(backend, () => server.query(text));
  } finally {
    await pool.end();
    await server.stop();
  }
});

test('what SQLite refuses was not done', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-refusals-'));
  const database = new Database(join(folder, 'leases.db'));
  try {
    const backend = sqliteBackend({ database });
    await backend.migrate();
    const rows = async (): Promise<unknown> => {
      return ['tenure_lines', 'tenure_entries'].map((table) => database.prepare(`SELECT * FROM ${table}`).all());
    };
    await refuse(backend, rows);
  } finally {
    database.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
