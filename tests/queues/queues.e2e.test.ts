import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Cluster } from '../cluster/cluster.ts';
import { QueueRun } from './queue-run.ts';

const seed = inject('seed');

describe.skipIf(!hasPostgres())(`a queue of clients on three servers (TENURE_TEST_SEED=${seed})`, () => {
  let database: PostgresDatabase;
  let cluster: Cluster;

  beforeAll(async () => {
    database = await PostgresDatabase.create();
    cluster = await Cluster.start(['s1', 's2', 's3'].map((name) => ({ name, engine: database.url() })));
  });

  afterAll(async () => {
    await cluster?.stop();
    await database?.dispose();
  });

  test('is served in order, one at a time, without those who went, while the leader is killed', async () => {
    const run = new QueueRun(cluster, 'lock', { waiters: 60, seed });
    try {
      const { over } = await run.begin();
      await run.go();
      await run.untilTurns(10, over);
      const killed = await cluster.leader();
      await killed.stop('SIGKILL');
      await run.untilTurns(30, over);
      await cluster.join({ name: killed.name, engine: database.url() });
      await over;
      expect([run.turns, run.expired, run.vanished]).toEqual([48, 6, 6]);
      await run.check();
      await cluster.checkSameState();
    } finally {
      run.stop();
    }
  });
});
