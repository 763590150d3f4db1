import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { expect, inject, test } from 'vitest';
import { Cluster } from '../cluster/cluster.ts';
import { QueueRun } from './queue-run.ts';

const seed = inject('seed');
const waiters = 1_000;
const kills = inject('effort') === 'soak' ? 8 : 3;

const title = `1,000 clients of one lock on three servers, whose leaders are killed (TENURE_TEST_SEED=${seed})`;

test.skipIf(!hasPostgres())(`${title}, are served in order`, async ({ onTestFinished }) => {
  const database = await PostgresDatabase.create();
  onTestFinished(() => database.dispose());
  const cluster = await Cluster.start(['s1', 's2', 's3'].map((name) => ({ name, engine: database.url() })));
  onTestFinished(() => cluster.stop());
  const run = new QueueRun(cluster, 'lock', { waiters, seed });
  onTestFinished(() => run.stop());
  const { over } = await run.begin();
  await run.go();
  for (let kill = 1; kill <= kills; kill += 1) {
    await run.untilTurns((run.takers * kill) / (kills + 1), over);
    const killed = await cluster.leader();
    await killed.stop('SIGKILL');
    await cluster.leader();
    await cluster.join({ name: killed.name, engine: database.url() });
  }
  await over;
  expect([run.turns, run.expired, run.vanished]).toEqual([800, 100, 100]);
  await run.check();
  await cluster.checkSameState();
});
