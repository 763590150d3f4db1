import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasPostgres, PostgresDatabase, SeededRandom } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Cluster } from '../cluster/cluster.ts';
import { HistoryRun } from './history-run.ts';
import { checkLeases } from './lease-check.ts';
import { moveLeader } from './move-leader.ts';
import { RecordedHistory } from './recorded-history.ts';
import { RevokeRace } from './revoke-race.ts';

/** Far longer than on an idle machine. */
const timeout = 150_000;
const seed = inject('seed');
const isSoak = inject('effort') === 'soak';
const races = isSoak ? 90 : 45;
const leadChanges = isSoak ? 3 : 2;
const kills = isSoak ? 4 : 2;

describe.skipIf(!hasPostgres())(`three servers on PostgreSQL (TENURE_TEST_SEED=${seed})`, () => {
  let database: PostgresDatabase;
  let cluster: Cluster;
  let run: HistoryRun | undefined;

  beforeAll(async () => {
    database = await PostgresDatabase.create();
    cluster = await Cluster.start(['s1', 's2', 's3'].map((name) => ({ name, engine: database.url() })));
  });

  afterAll(async () => {
    await run?.stop();
    await cluster?.stop();
    await database?.dispose();
  });

  test(
    'acknowledge no renewal after a revoke, through any server, during transfers of leadership',
    { timeout },
    async () => {
      const history = new RecordedHistory();
      const race = new RevokeRace(cluster.members, history, new SeededRandom(seed));
      for (let round = 0; round < races; round += 1) {
        const moved = round % 15 === 14 ? moveLeader(cluster) : Promise.resolve();
        await race.run(BigInt(500_000 + round));
        await moved;
      }
      race.close();
      expect(checkLeases(history.leases)).toEqual([]);
      const renewals = history.leases.filter(({ input }) => input.kind === 'renew');
      console.log(`${renewals.length} renewals around ${races} revokes`);
      expect(renewals.length).toBeGreaterThanOrEqual(2 * 3 * races);
    },
  );

  test('are one linearizable store for concurrent clients, during transfers of leadership', { timeout }, async () => {
    run = new HistoryRun(cluster, { seed });
    for (let change = 0; change < leadChanges; change += 1) {
      await run.progress(150);
      await moveLeader(cluster);
    }
    await run.progress(150);
    await run.finish();
  });
});

test(
  `the history of one server on its own disk is linearizable through kill -9 (TENURE_TEST_SEED=${seed})`,
  { timeout },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tenure-histories-'));
    const options = { name: 's1', engine: 'file', flags: ['--data-dir', join(folder, 'data')] };
    const cluster = await Cluster.start([options]);
    const run = new HistoryRun(cluster, { seed });
    try {
      for (let kill = 0; kill < kills; kill += 1) {
        await run.progress(150);
        await cluster.members[0]?.stop('SIGKILL');
        await cluster.join(options);
      }
      await run.progress(150);
      await run.finish();
    } finally {
      await run.stop();
      await cluster.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
);
