import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { Client, Pool } from 'pg';
import { createLeaseManager } from 'tenure';
import type { Claim } from 'tenure';
import { postgresBackend } from 'tenure/postgres';
import type { PostgresBackend } from 'tenure/postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const signal = new AbortController().signal;
const shortTtlMs = 200;

const claim = (name: string, ttlMs: number): Claim => {
  return { name, id: crypto.randomUUID(), holder: 'h', mode: 'exclusive', permits: 1, ttlMs, data: '' };
};

/** Two statements that conflict on one row, in an order that occurs once in a million calls. */
describe.skipIf(!hasPostgres()).each(['read committed', 'serializable'])(
  'statements that conflict on a row of PostgreSQL, by default %s',
  (isolation) => {
    let server: PostgresDatabase;
    let pool: Pool;
    let backend: PostgresBackend;
    /** Another process, within its transaction. */
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
      const { sequence } = await backend.enter(asked, { onlyIfHolds: false, signal });
      if (sequence === undefined) throw new Error('the entry was refused');
      return { name, id: asked.id, sequence };
    };
    const expired = (name: string) =>
      untilRow(`SELECT FROM tenure_entries WHERE name = $1 AND expires_at < now()`, name);
    const untilRow = async (text: string, ...values: string[]): Promise<void> => {
      while ((await server.query(text, values)).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    /** Starts `call`, which conflicts with the other transaction, and commits that one once the call waits. */
    const meet = async <T>(count: number, call: () => Promise<T>): Promise<T> => {
      const calling = call();
      const waiting = `SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' OFFSET $1::int LIMIT 1`;
      await untilRow(waiting, `${count - 1}`);
      await other.query('COMMIT');
      return calling;
    };

    test('a list and an enter that meet an expired entry during its renewal still return it', async () => {
      for (const looks of [
        async (name: string) => backend.list(name, signal),
        async (name: string) => (await backend.enter(claim(name, 60_000), { onlyIfHolds: true, signal })).entries,
      ]) {
        const key = await enter(crypto.randomUUID(), shortTtlMs);
        await other.query('BEGIN');
        const renewal = `UPDATE tenure_entries SET expires_at = now() + interval '1 minute' WHERE name = $1`;
        await other.query(renewal, [key.name]);
        await expired(key.name);
        const queue = await meet(1, () => looks(key.name));
        expect(queue.map(({ sequence }) => sequence)).toStrictEqual([key.sequence]);
        expect(await backend.renew([{ ...key, ttlMs: 60_000 }], signal)).toEqual([true]);
      }
    });

    test('a renewal, an update and a release that conflict with a removal are too late', async () => {
      const key = await enter(crypto.randomUUID(), 60_000);
      for (const late of [
        async () => (await backend.renew([{ ...key, ttlMs: 60_000 }], signal))[0],
        async () => backend.update(key, 'late', signal),
        async () => backend.leave(key, signal),
      ]) {
        await other.query('BEGIN');
        const [row] = (await other.query(`DELETE FROM tenure_entries WHERE name = $1 RETURNING *`, [key.name])).rows;
        expect(await meet(1, late)).toBe(false);
        const columns = Object.keys(row as object);
        const places = columns.map((_, at) => `$${at + 1}`).join(', ');
        const insert = `INSERT INTO tenure_entries (${columns.join(', ')}) VALUES (${places})`;
        await server.query(insert, Object.values(row as object));
      }
    });

    test('of two calls that found the queue empty and wait for its counter, one enters', async () => {
      const name = crypto.randomUUID();
      await backend.leave(await enter(name, 60_000), signal);
      await other.query('BEGIN');
      await other.query('SELECT FROM tenure_lines WHERE name = $1 FOR UPDATE', [name]);
      const entered = await meet(2, () =>
        Promise.all([1, 2].map(() => backend.enter(claim(name, 60_000), { onlyIfHolds: true, signal }))),
      );
      expect(entered.filter(({ sequence }) => sequence !== undefined).length).toBe(1);
      expect((await backend.list(name, signal)).length).toBe(1);
    });

    test('a call that waits for the counter sees all earlier entries', async () => {
      const name = crypto.randomUUID();
      await enter(name, 60_000);
      await other.query('BEGIN');
      await other.query('UPDATE tenure_lines SET last_ticket = last_ticket + 1 WHERE name = $1', [name]);
      const insert = `INSERT INTO tenure_entries SELECT name, ticket + 1, 'other', holder, mode, permits, ttl_ms, data,
        expires_at FROM tenure_entries WHERE name = $1`;
      await other.query(insert, [name]);
      const { entries } = await meet(1, () => backend.enter(claim(name, 60_000), { onlyIfHolds: false, signal }));
      expect(entries.map(({ sequence }) => sequence)).toEqual([1n, 2n, 3n]);
    });

    test('a call that is cancelled while it waits for the counter still enters, and its entry is removed', async () => {
      const name = crypto.randomUUID();
      const leases = createLeaseManager({ backend, ttlMs: 600_000 });
      await other.query('BEGIN');
      await other.query('INSERT INTO tenure_lines VALUES ($1, 1)', [`lease/${name}`]);
      const controller = new AbortController();
      const refused = leases.acquire(name, { signal: controller.signal }).catch((error: unknown) => error);
      await untilRow(`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`);
      controller.abort(new Error('enough'));
      expect(await refused).toMatchObject({ message: 'enough' });
      // By now its removal was requested, and found no entry.
      await backend.list(`lease/${name}`, signal);
      await other.query('COMMIT');
      await untilRow('SELECT FROM tenure_lines WHERE name = $1 AND last_ticket = 2', `lease/${name}`);
      const isEmpty = 'SELECT WHERE NOT EXISTS (SELECT FROM tenure_entries WHERE name = $1)';
      await untilRow(isEmpty, `lease/${name}`);
      expect((await leases.tryAcquire(name))?.isHeld()).toBe(true);
      await leases[Symbol.asyncDispose]();
    });
  },
);
