// A process that increments a row of PostgreSQL under a lease: it reads, works, and writes the value plus one. On
// command it stops between the read and the write, after a check that it still holds the lease.
import pg from 'pg';
import { createLeaseManager, LeaseLostError } from 'tenure';
import { fenceClause, requireGuarded } from 'tenure/guard';
import { openBackend } from './open-backend.mjs';

const { backend: spec, address, holder, ttlMs, isGuarded } = JSON.parse(process.argv[2]);

const { backend, end } = await openBackend(spec, ttlMs);
const leases = createLeaseManager({ backend, holder, ttlMs });
const pool = new pg.Pool({ connectionString: address, max: 1 });
pool.on('error', () => undefined);
let isAsked = true;
let isToStop = false;
process.on('message', (message) => {
  if (message === 'enough') isAsked = false;
  if (message === 'stop') isToStop = true;
});

/** Resolves when the parent will get the message even if this process dies. */
const report = (what, fields = {}) => new Promise((resolve) => process.send({ what, holder, ...fields }, resolve));

/** A read that the write depends on raises the fence itself, so that no older holder can change the row afterwards. */
async function read(hold) {
  const fence = fenceClause(hold);
  const text = isGuarded
    ? `UPDATE counter SET ${fence.set} WHERE ${fence.where} RETURNING value`
    : 'SELECT value FROM counter';
  const { rows, rowCount } = await pool.query(text);
  requireGuarded(rowCount, hold);
  return Number(rows[0].value);
}

/** Inserts a row in the same statement, as a record of this write. */
async function write(hold, value) {
  const fence = fenceClause(hold);
  const [set, where] = isGuarded ? [`, ${fence.set}`, `WHERE ${fence.where}`] : ['', ''];
  const text = `WITH counted AS (UPDATE counter SET value = $1${set} ${where} RETURNING value)
INSERT INTO counts (holder, value) SELECT $2, value FROM counted`;
  requireGuarded((await pool.query(text, [value, holder])).rowCount, hold);
}

async function countOnce(hold) {
  const value = await read(hold);
  await report('read');
  await new Promise((resolve) => setTimeout(resolve, 2));
  hold.throwIfLost();
  if (isToStop) {
    isToStop = false;
    await report('stopping');
    hold.throwIfLost();
    process.kill(process.pid, 'SIGSTOP');
  }
  try {
    await write(hold, value + 1);
    await report('counted');
  } catch (error) {
    // The guard refused the write: another holder has written with a newer token.
    if (error instanceof LeaseLostError) await report('refused');
    throw error;
  }
}

while (isAsked) {
  let hold;
  try {
    hold = await leases.acquire('counter');
    await countOnce(hold);
  } catch (error) {
    const isLost = error instanceof LeaseLostError;
    await report(isLost ? 'lost' : 'failed', { message: error.message });
    if (!isLost) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await hold?.release().catch(() => undefined);
}
await leases[Symbol.asyncDispose]().catch(() => undefined);
await end();
await pool.end();
process.disconnect();
