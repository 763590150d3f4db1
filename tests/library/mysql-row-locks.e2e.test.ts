import { hasMariadb, MariadbServer } from '@tenure/test-support';
import mysql from 'mysql2/promise';
import type { Claim } from 'tenure';
import { mysqlBackend } from 'tenure/mysql';
import type { MysqlBackend } from 'tenure/mysql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const signal = new AbortController().signal;
const shortTtlMs = 200;

const claim = (name: string, ttlMs: number): Claim => {
  return { name, id: crypto.randomUUID(), holder: 'h', mode: 'exclusive', permits: 1, ttlMs, data: '' };
};

/** Two statements that conflict on one row, in an order that occurs once in a million calls. */
describe.skipIf(!hasMariadb())('statements that conflict on a row of MariaDB', () => {
  let server: MariadbServer;
  let pool: mysql.Pool;
  let backend: MysqlBackend;
  /** Another process, within its transaction. */
  let other: mysql.Connection;

  beforeAll(async () => {
    server = await MariadbServer.start();
    await server.query('CREATE DATABASE leases');
    pool = mysql.createPool(server.options('leases'));
    backend = mysqlBackend({ pool });
    await backend.migrate();
    other = await mysql.createConnection(server.options('leases'));
  });
  afterAll(async () => {
    await other.end();
    await backend.close();
    await pool.end();
    await server.stop();
  });

  const enter = async (name: string, ttlMs: number) => {
    const asked = claim(name, ttlMs);
    const { sequence } = await backend.enter(asked, { onlyIfHolds: false, signal });
    if (sequence === undefined) throw new Error('the entry was refused');
    return { name, id: asked.id, sequence };
  };
  const untilRows = async (text: string, count = 1): Promise<void> => {
    while (((await server.query(text)) as unknown[]).length < count) {
      // InnoDB refreshes its list of waiting transactions only for readers that paused for a tenth of a second.
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
  };
  /** Starts `call`, which conflicts with the other transaction, and commits that one once the call waits. */
  const meet = async <T>(count: number, call: () => Promise<T>): Promise<T> => {
    const calling = call();
    await untilRows(`SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`, count);
    await other.query('COMMIT');
    return calling;
  };

  test('a list and an enter that meet an expired entry during its renewal still return it', async () => {
    for (const looks of [
      async (name: string) => backend.list(name, signal),
      async (name: string) => (await backend.enter(claim(name, 60_000), { onlyIfHolds: true, signal })).entries,
    ]) {
      const key = await enter(crypto.randomUUID(), shortTtlMs);
      await other.query('START TRANSACTION');
      const renewal = `UPDATE tenure_entries SET expires_at = UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE`;
      await other.query(`${renewal} WHERE name = '${key.name}'`);
      const expired = `SELECT 1 FROM leases.tenure_entries WHERE expires_at < UTC_TIMESTAMP(6)`;
      await untilRows(`${expired} AND name = '${key.name}'`);
      const queue = await meet(1, () => looks(key.name));
      expect(queue.map(({ sequence }) => sequence)).toStrictEqual([key.sequence]);
      expect(await backend.renew([{ ...key, ttlMs: 60_000 }], signal)).toEqual([true]);
    }
  });

  test('a renewal, an update and a release that conflict with a removal are too late', async () => {
    for (const late of [
      async (key: Awaited<ReturnType<typeof enter>>) => (await backend.renew([{ ...key, ttlMs: 60_000 }], signal))[0],
      async (key: Awaited<ReturnType<typeof enter>>) => backend.update(key, 'late', signal),
      async (key: Awaited<ReturnType<typeof enter>>) => backend.leave(key, signal),
    ]) {
      const key = await enter(crypto.randomUUID(), 60_000);
      await other.query('START TRANSACTION');
      await other.query(`DELETE FROM tenure_entries WHERE name = '${key.name}'`);
      expect(await meet(1, () => late(key))).toBe(false);
    }
  });

  test('of two calls that wait for the counter of an empty queue, one enters', async () => {
    const name = crypto.randomUUID();
    await backend.leave(await enter(name, 60_000), signal);
    await other.query('START TRANSACTION');
    await other.query(`SELECT 1 FROM tenure_lines WHERE name = '${name}' FOR UPDATE`);
    const entered = await meet(2, () =>
      Promise.all([1, 2].map(() => backend.enter(claim(name, 60_000), { onlyIfHolds: true, signal }))),
    );
    expect(entered.filter(({ sequence }) => sequence !== undefined).length).toBe(1);
    expect((await backend.list(name, signal)).length).toBe(1);
  });

  test('a call that waits for the counter sees all earlier entries', async () => {
    const name = crypto.randomUUID();
    await enter(name, 60_000);
    await other.query('START TRANSACTION');
    await other.query(`UPDATE tenure_lines SET last_ticket = last_ticket + 1 WHERE name = '${name}'`);
    const columns = 'holder, mode, permits, ttl_ms, data, expires_at';
    await other.query(`INSERT INTO tenure_entries (name, ticket, id, ${columns})
      SELECT name, ticket + 1, 'other', ${columns} FROM tenure_entries WHERE name = '${name}'`);
    const { entries } = await meet(1, () => backend.enter(claim(name, 60_000), { onlyIfHolds: false, signal }));
    expect(entries.map(({ sequence }) => sequence)).toEqual([1n, 2n, 3n]);
  });

  test('a deadlock is retried', async () => {
    const [one, two] = [await enter('deadlock/one', 60_000), await enter('deadlock/two', 60_000)];
    await other.query('START TRANSACTION');
    // InnoDB rolls back the transaction with fewer changes, which is the backend's.
    const change = 'UPDATE tenure_entries SET updates = updates + 1 WHERE name';
    await other.query(`${change} = 'deadlock/two'`);
    for (let more = 0; more < 20; more++) await other.query(`INSERT INTO tenure_lines VALUES ('more ${more}', 1)`);
    const renewing = backend.renew(
      [one, two].map((key) => ({ ...key, ttlMs: 60_000 })),
      signal,
    );
    await untilRows(`SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`);
    await other.query(`${change} = 'deadlock/one'`);
    await other.query('COMMIT');
    expect(await renewing).toEqual([true, true]);
  });
});
