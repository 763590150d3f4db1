// A holder is blocked for longer than its lease, and another one takes over. When the first one continues, its writes
// are refused by the database:   DATABASE_URL=postgres://... node examples/dist/guarded-writes.js
import { once } from 'node:events';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Pool } from 'pg';
import type { PoolClient } from 'pg';
import { createLeaseManager } from 'tenure';
import type { Hold } from 'tenure';
import { fenceClause, fenceStatements, migrateFences, requireGuarded } from 'tenure/guard';
import { postgresBackend } from 'tenure/postgres';

const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });
const backend = postgresBackend({ pool, pollIntervalMs: 100 });

/** One row with a column for the token: the check is part of the write. */
async function setState(hold: Hold, state: string): Promise<void> {
  const fence = fenceClause(hold);
  const text = `UPDATE jobs SET state = $1, ${fence.set} WHERE id = 1 AND ${fence.where}`;
  requireGuarded((await pool.query(text, [state])).rowCount, hold);
}

/** Any writes in one transaction: the check comes first, and its row stays locked until the end. */
async function addEntry(hold: Hold, entry: string): Promise<void> {
  const { ensure, check } = fenceStatements(hold, { dialect: 'postgres' });
  await pool.query(ensure.text, [...ensure.values]);
  await inTransaction(async (client) => {
    requireGuarded((await client.query(check.text, [...check.values])).rowCount, hold);
    await client.query('INSERT INTO journal VALUES ($1)', [entry]);
  });
}

async function inTransaction(work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await work(client);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

async function setUp(): Promise<void> {
  await backend.migrate();
  await pool.query('CREATE TABLE jobs (id int PRIMARY KEY, state text NOT NULL, fence bigint NOT NULL DEFAULT 0)');
  await pool.query("INSERT INTO jobs VALUES (1, 'new')");
  await pool.query('CREATE TABLE journal (entry text NOT NULL)');
  await migrateFences((sql) => pool.query(sql), { dialect: 'postgres' });
}

async function standsStill(): Promise<void> {
  await using leases = createLeaseManager({ backend, holder: 'first', ttlMs: 5_000 });
  const hold = await leases.acquire('job-1');
  await setState(hold, 'begun by the first');

  // No timer, no renewal and no signal of this thread gets through until the other one has done its work.
  const isDone = new Int32Array(new SharedArrayBuffer(4));
  const ended = once(new Worker(new URL(import.meta.url), { workerData: isDone }), 'exit');
  Atomics.wait(isDone, 0, 0);

  console.log('the first woke up, and knows when it looks:', !hold.isHeld());
  await setState(hold, 'ended by the first').catch((error: unknown) => console.log('its row:', String(error)));
  await addEntry(hold, 'of the first').catch((error: unknown) => console.log('its entry:', String(error)));
  console.log((await pool.query('SELECT state FROM jobs')).rows, (await pool.query('SELECT entry FROM journal')).rows);
  await ended;
}

async function takesOver(isDone: Int32Array): Promise<void> {
  await using leases = createLeaseManager({ backend, holder: 'second' });
  await using hold = await leases.acquire('job-1');
  await setState(hold, 'ended by the second');
  await addEntry(hold, 'of the second');
  Atomics.store(isDone, 0, 1);
  Atomics.notify(isDone, 0);
}

if (isMainThread) await setUp().then(standsStill);
else await takesOver(workerData as Int32Array);
await pool.end();
