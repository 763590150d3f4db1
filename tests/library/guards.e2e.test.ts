import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import pg from 'pg';
import { createLeaseManager, LeaseLostError } from 'tenure';
import type { Hold } from 'tenure';
import { etcdBackend, EtcdClient, operation } from 'tenure/etcd';
import { fenceClause, fenceStatements, migrateFences, requireGuarded } from 'tenure/guard';
import { memoryBackend } from 'tenure/memory';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { etcdServerKinds } from './etcd-servers.ts';

/** Two holds of one lease, the first of which was lost while its holder was paused. */
async function pausedAndNext(): Promise<readonly [Hold, Hold]> {
  const backend = memoryBackend();
  const manager = createLeaseManager({ backend, ttlMs: 60_000 });
  const paused = await manager.acquire('nightly');
  await backend.leave(paused.entry, new AbortController().signal);
  return [paused, await manager.acquire('nightly')];
}

describe.skipIf(!hasPostgres())('a guard in PostgreSQL refuses a holder that was paused', () => {
  let database: PostgresDatabase;
  let pool: pg.Pool;

  beforeAll(async () => {
    database = await PostgresDatabase.create();
    pool = new pg.Pool({ connectionString: database.url() });
    await pool.query('CREATE TABLE jobs (id int PRIMARY KEY, state text, fence bigint NOT NULL DEFAULT 0)');
    await pool.query("INSERT INTO jobs VALUES (1, 'new')");
  });
  afterAll(async () => {
    await pool.end();
    await database.dispose();
  });

  test('by a column of the row', async () => {
    const [paused, next] = await pausedAndNext();
    const write = async (hold: Hold, state: string): Promise<void> => {
      const fence = fenceClause(hold);
      const text = `UPDATE jobs SET state = $1, ${fence.set} WHERE id = $2 AND ${fence.where}`;
      requireGuarded((await pool.query(text, [state, 1])).rowCount, hold);
    };
    await write(paused, 'by the first');
    await write(next, 'by the next');
    await expect(write(paused, 'too late')).rejects.toThrow(LeaseLostError);
    await write(next, 'again');
    expect((await pool.query('SELECT state FROM jobs')).rows).toStrictEqual([{ state: 'again' }]);
  });

  test('by a table of tokens, in the transaction of any writes', async () => {
    const [paused, next] = await pausedAndNext();
    await migrateFences((sql) => pool.query(sql), { dialect: 'postgres' });
    const write = async (hold: Hold, state: string): Promise<void> => {
      const { ensure, check } = fenceStatements(hold, { dialect: 'postgres' });
      const client = await pool.connect();
      try {
        await client.query(ensure.text, [...ensure.values]);
        await client.query('BEGIN');
        requireGuarded((await client.query(check.text, [...check.values])).rowCount, hold);
        await client.query('UPDATE jobs SET state = $1', [state]);
        await client.query('COMMIT');
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    };
    await write(next, 'by the next');
    await expect(write(paused, 'too late')).rejects.toThrow(LeaseLostError);
    expect((await pool.query('SELECT state FROM jobs')).rows).toStrictEqual([{ state: 'by the next' }]);
  });
});

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))('a guard in $name', (kind) => {
  test('refuses a holder that was paused, in the transaction of its write', async () => {
    const server = await kind.start();
    try {
      await using client = new EtcdClient({ endpoints: server.endpoint });
      const backend = etcdBackend({ client });
      await using manager = createLeaseManager({ backend, ttlMs: 60_000 });
      const write = async (hold: Hold, value: string): Promise<void> => {
        const txn = client.kv.txn().if(backend.guard(hold)).do(operation.put('state', value));
        requireGuarded((await txn.commit()).succeeded, hold);
      };
      const paused = await manager.acquire('nightly');
      await write(paused, 'by the first');
      await backend.leave(paused.entry, new AbortController().signal);
      const next = await manager.acquire('nightly');
      expect(next.fencingToken).toBeGreaterThan(paused.fencingToken);
      await expect(write(paused, 'too late')).rejects.toThrow(LeaseLostError);
      await write(next, 'by the next');
      expect((await client.kv.getOne('state'))?.value).toBe('by the next');
    } finally {
      await server.dispose();
    }
  });
});
