import assert from 'node:assert/strict';
import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { Client, Pool } from 'pg';
import { createLeaseManager } from 'tenure';
import type { Claim } from 'tenure';
import { postgresBackend } from 'tenure/postgres';
import type { PostgresBackend } from 'tenure/postgres';
import { afterAll, beforeAll, describe, test } from 'vitest';

const signal = new AbortController().signal;
const shortTtlMs = 200;

const claim = (name: string, ttlMs: number): Claim => {
  return { name, id: crypto.randomUUID(), holder: 'h', mode: 'exclusive', permits: 1, ttlMs, data: '' };
};

/** Two statements that meet at one row, held in the order that a race brings about once in a million calls. */
describe.skipIf(!hasPostgres()).each(['read committed', 'serializable'])(
  'statements that meet at a row of PostgreSQL, by default %s',
  (isolation) => {
    let server: PostgresDatabase;
    let pool: Pool;
    let backend: PostgresBackend;
    /** Another process, in the middle of its transaction. */
    let other: Client;

    beforeAll(async () => {
      server = await PostgresDatabase.create();
      const options = `-c default_transaction_isolation=${isolation.replaceAll(' ', '\\ ')}`;
      pool = new Pool({ connectionString: server.url(), options });
      pool.on('error', () => undefined);
      backend = postgresBackend({ pool });
      await backend.migrate();
      other = new Client({ connectionString: server.url() });
      await other.connect();
    });
    afterAll(async () => {
      await other.end();
      await backend.close();
      await pool.end();
      await server.dispose();
    });

    const enter = async (name: string, ttlMs: number) => {
      const asked = claim(name, ttlMs);
      const { ticket } = await backend.enter(asked, { onlyIfHolds: false, signal });
      assert.ok(ticket !== undefined);
      return { name, id: asked.id, ticket };
    };
    const expired = (name: string) =>
      untilRow(`SELECT FROM tenure_entries WHERE name = $1 AND expires_at < now()`, name);
    const untilRow = async (text: string, ...values: string[]): Promise<void> => {
      while ((await server.query(text, values)).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    /** Begins `call`, which meets the other's transaction, and ends that one once it waits. */
    const meet = async <T>(count: number, call: () => Promise<T>): Promise<T> => {
      const calling = call();
      const waiting = `SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' OFFSET $1::int LIMIT 1`;
      await untilRow(waiting, `${count - 1}`);
      await other.query('COMMIT');
      return calling;
    };

    test('a list and an entering that find expired what is just being renewed show it', async () => {
      for (const looks of [
        async (name: string) => backend.list(name, signal),
        async (name: string) => (await backend.enter(claim(name, 60_000), { onlyIfHolds: true, signal })).entries,
      ]) {
        const key = await enter(crypto.randomUUID(), shortTtlMs);
        await other.query('BEGIN');
        const renewal = `UPDATE tenure_entries SET expires_at = now() + interval '1 minute' WHERE name = $1`;
        await other.query(renewal, [key.name]);
        await expired(key.name);
        const line = await meet(1, () => looks(key.name));
        assert.deepEqual(
          line.map(({ ticket }) => ticket),
          [key.ticket],
        );
        assert.deepEqual(await backend.renew([{ ...key, ttlMs: 60_000 }], signal), [true]);
      }
    });

    test('a renewal, an update and a release that meet a removal are too late', async () => {
      const key = await enter(crypto.randomUUID(), 60_000);
      for (const late of [
        async () => (await backend.renew([{ ...key, ttlMs: 60_000 }], signal))[0],
        async () => backend.update(key, 'late', signal),
        async () => backend.leave(key, signal),
      ]) {
        await other.query('BEGIN');
        const [row] = (await other.query(`DELETE FROM tenure_entries WHERE name = $1 RETURNING *`, [key.name])).rows;
        assert.equal(await meet(1, late), false);
        const columns = Object.keys(row as object);
        const places = columns.map((_, at) => `$${at + 1}`).join(', ');
        const insert = `INSERT INTO tenure_entries (${columns.join(', ')}) VALUES (${places})`;
        await server.query(insert, Object.values(row as object));
      }
    });

    test('of two that found the line free and wait for its counter, one enters', async () => {
      const name = crypto.randomUUID();
      await backend.leave(await enter(name, 60_000), signal);
      await other.query('BEGIN');
      await other.query('SELECT FROM tenure_lines WHERE name = $1 FOR UPDATE', [name]);
      const entered = await meet(2, () =>
        Promise.all([1, 2].map(() => backend.enter(claim(name, 60_000), { onlyIfHolds: true, signal }))),
      );
      assert.equal(entered.filter(({ ticket }) => ticket !== undefined).length, 1);
      assert.equal((await backend.list(name, signal)).length, 1);
    });

    test('who waits for the counter sees all that entered before', async () => {
      const name = crypto.randomUUID();
      await enter(name, 60_000);
      await other.query('BEGIN');
      await other.query('UPDATE tenure_lines SET last_ticket = last_ticket + 1 WHERE name = $1', [name]);
      const insert = `INSERT INTO tenure_entries SELECT name, ticket + 1, 'other', holder, mode, permits, ttl_ms, data,
        expires_at FROM tenure_entries WHERE name = $1`;
      await other.query(insert, [name]);
      const { entries } = await meet(1, () => backend.enter(claim(name, 60_000), { onlyIfHolds: false, signal }));
      assert.deepEqual(
        entries.map(({ ticket }) => ticket),
        [1n, 2n, 3n],
      );
    });

    test('who is cancelled while it waits for the counter enters all the same, and is taken out again', async () => {
      const name = crypto.randomUUID();
      const leases = createLeaseManager({ backend, ttlMs: 600_000 });
      await other.query('BEGIN');
      await other.query('INSERT INTO tenure_lines VALUES ($1, 1)', [`lease/${name}`]);
      const controller = new AbortController();
      const refused = assert.rejects(leases.acquire(name, { signal: controller.signal }), /^Error: enough$/);
      await untilRow(`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`);
      controller.abort(new Error('enough'));
      await refused;
      // By now it has been asked to leave, and was not found.
      await backend.list(`lease/${name}`, signal);
      await other.query('COMMIT');
      await untilRow('SELECT FROM tenure_lines WHERE name = $1 AND last_ticket = 2', `lease/${name}`);
      const isEmpty = 'SELECT WHERE NOT EXISTS (SELECT FROM tenure_entries WHERE name = $1)';
      await untilRow(isEmpty, `lease/${name}`);
      assert.ok((await leases.tryAcquire(name))?.isHeld());
      await leases[Symbol.asyncDispose]();
    });
  },
);
