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
import { describe, expect, test } from 'vitest';
import { etcdServerKinds } from './etcd-servers.ts';

/** All other codes mean for certain that nothing was executed. */
const unsure: readonly EtcdErrorCode[] = ['ambiguous', 'unreachable'];

async function codeOf(call: Promise<unknown>): Promise<EtcdErrorCode | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    if (!(error instanceof EtcdError)) throw error;
    return error.etcdCode;
  }
}

describe.skipIf(!hasEtcd())('etcd at its quota', () => {
  const value = 'x'.repeat(16 * 1024);
  const burst = 50;
  const burstsMax = 40;
  /** It depends on milliseconds whether etcd executes a put that it then refuses: five servers of six did. */
  const serversMax = 10;

  /** The number of failed calls that had an effect. */
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
            expect(unsure, `${code}, but it was executed`).toContain(code);
          }
        });
        await Promise.all(calls);
      }
      expect(failed, 'the quota was never met').toBeGreaterThan(0);
      return done;
    } finally {
      await server.dispose();
    }
  }

  test('no error of an executed call claims that it was refused', async () => {
    let done = 0;
    for (let servers = 0; servers < serversMax && done === 0; servers++) done = await checkWhileFilling();
    expect(done, 'no failed call had an effect, so no error was tested').toBeGreaterThan(0);
  });
});

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))('a refusal of $name', (kind) => {
  test('has no effect if the error says so', async () => {
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
      expect(codes).toStrictEqual(refused.map(([, code]) => code));
      const { kvs, revision } = await kv.get({ prefix: '' });
      expect([kvs.map(({ key }) => key), revision]).toStrictEqual([['before'], before.revision]);
      expect((await lease.timeToLive(7n))?.grantedMs).toBe(60_000);
    } finally {
      await server.dispose();
    }
  });
});

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))('a queue in $name with a foreign key', (kind) => {
  test('refuses new entries, and no entry is left in it', async () => {
    const server = await kind.start();
    await using client = new EtcdClient({ endpoints: server.endpoint });
    try {
      await client.kv.put('tenure/lease/job/foreign', 'hello');
      const backend = etcdBackend({ client });
      const entering = backend.enter({ ...claim, name: 'lease/job' }, { onlyIfHolds: false, signal });
      await expect(entering).rejects.toMatchObject({ backendCode: 'misconfigured' });
      const { kvs } = await client.kv.get({ prefix: 'tenure/' });
      expect(kvs.map(({ key }) => key)).toEqual(['tenure/lease/job/foreign']);
    } finally {
      await server.dispose();
    }
  });
});

const { signal } = new AbortController();
const claim: Claim = { name: 'n', id: 'i', holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 60_000, data: '' };
/** Random, so that it can't be compressed. */
const longName = Array.from({ length: 2_000 }, () => Math.random().toString(36).slice(2)).join('');

/** Mistakes of a program that calls a backend without the manager. */
const wrongClaims: readonly (readonly [string, Partial<Claim>])[] = [
  ['a mode that does not exist', { mode: 'bogus' as Claim['mode'] }],
  ['a name that is too long', { name: longName }],
  ['a character 0', { holder: 'a\0b' }],
  ['too many permits', { permits: 2 ** 40 }],
  ['a time beyond all dates', { ttlMs: 2 ** 52 }],
  ['an id that is too long', { id: longName }],
  ['too much data', { data: 'x'.repeat(9_000_000) }],
];

/** `rows` returns all stored rows. A claim that is not refused is accepted, or its outcome is unknown. */
async function refuse(backend: LeaseBackend, rows: () => Promise<unknown>): Promise<void> {
  await backend.enter({ ...claim, name: 'before', id: 'before' }, { onlyIfHolds: false, signal });
  const codes: Record<string, string> = {};
  for (const [what, wrong] of wrongClaims) {
    const before = await rows();
    try {
      await backend.enter({ ...claim, ...wrong }, { onlyIfHolds: false, signal });
      await backend.leave({ ...claim, ...wrong, sequence: 0n }, signal);
      codes[what] = 'taken';
    } catch (error) {
      if (!(error instanceof BackendError)) throw error;
      codes[what] = error.backendCode;
      if (error.backendCode === 'unavailable') continue;
      expect(await rows(), `${what}: ${error.message}`).toStrictEqual(before);
    }
  }
  expect(
    Object.values(codes).filter((code) => code === 'refused').length,
    JSON.stringify(codes),
  ).toBeGreaterThanOrEqual(2);
}

test.skipIf(!hasPostgres())('a claim that PostgreSQL refuses is not stored', async () => {
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

test.skipIf(!hasMariadb())('a claim that MariaDB refuses is not stored', async () => {
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

test('a claim that SQLite refuses is not stored', async () => {
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
