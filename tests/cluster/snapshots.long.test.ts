import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { ClusterLoad } from './cluster-load.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { engineOnPostgres } from './tested-engine.ts';

const snapshotCount = 50;
const flags = ['--snapshot-count', `${snapshotCount}`];

test.skipIf(!hasPostgres())(
  'a server that was down until its next entry was trimmed starts from a snapshot',
  async () => {
    const database = await PostgresCluster.create();
    const cluster = await FaultyCluster.start(engineOnPostgres(database), { flags });
    const load = await ClusterLoad.start(cluster.servers, 1);
    try {
      await load.progress(100);
      const [out] = (await cluster.servers.followers()) as [ClusterMember];
      const reached = Number((await out.maintenance.status({})).raftAppliedIndex);
      await out.stop('SIGKILL');
      // The log is not kept for a server that is down for longer than the time between two snapshots.
      for (let oldest = 0; oldest <= reached;) {
        await load.progress(snapshotCount);
        const [row] = await database.query('SELECT min(index) AS oldest FROM tenure.entries');
        oldest = Number(row?.['oldest']);
      }
      const back = await cluster.restart(out.name);
      const revision = await back.put('from', 'the server that was down');
      expect(await back.get('from')).toBe('the server that was down');
      expect(await (await cluster.servers.leader()).get('from')).toBe('the server that was down');
      expect(revision).toBeGreaterThan(100);
      await load.progress(20);
      await load.finish();
    } finally {
      await load.stop();
      await cluster.dispose();
    }
  },
);
