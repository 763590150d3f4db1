// One of several replicas does the nightly job. Run it once for each replica, on one database:
//   DATABASE_URL=postgres://... node examples/dist/nightly-job.js replica-1
import { Pool } from 'pg';
import { createLeaseManager } from 'tenure';
import type { Hold, LeaseManager } from 'tenure';
import { postgresBackend } from 'tenure/postgres';

const replica = process.argv[2] ?? 'replica-1';
const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });
pool.on('error', () => {}); // a connection at rest broke; the next query opens another

/** More than the replicas' clocks differ, so that one that is late still finds the lease taken. */
const holdAtLeastMs = 10 * 60_000;

async function nightly(leases: LeaseManager): Promise<void> {
  await using hold = await leases.tryAcquire('nightly-report', { ttlMs: 30_000, holdAtLeastMs });
  if (hold === null) {
    const other = await leases.inspect('nightly-report');
    console.log(`${replica}: left to ${other?.holder ?? 'another replica'}`);
    return;
  }
  await makeReport(hold);
  console.log(`${replica}: made the report`);
}

async function makeReport(hold: Hold): Promise<void> {
  await pool.query('CREATE TABLE IF NOT EXISTS reports (made_by text NOT NULL)');
  hold.throwIfLost(); // before each step that others could see
  await pool.query('INSERT INTO reports VALUES ($1)', [replica]);
}

try {
  const backend = postgresBackend({ pool });
  await backend.migrate();
  await using leases = createLeaseManager({ backend, holder: replica, releaseOn: ['SIGTERM', 'SIGINT'] });
  await nightly(leases);
} finally {
  await pool.end();
}
