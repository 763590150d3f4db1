import { EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AbandonedLeases } from './abandoned-leases.ts';
import { ClusterLoad } from './cluster-load.ts';
import { Cluster } from './cluster.ts';
import { StallMeter } from './stall-meter.ts';

const keptTtlMs = 5_000;
const abandonedTtlMs = 2_000;

/** `cluster.e2e` has the same for PostgreSQL, and much more. */
describe.skipIf(!hasEtcd())('two servers on etcd', { timeout: 180_000 }, () => {
  let etcd: EtcdProcess;
  let cluster: Cluster;

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
    cluster = await Cluster.start(['s1', 's2'].map((name) => ({ name, engine: `etcd://${etcd.endpoint}/tenure` })));
  });

  afterAll(async () => {
    await cluster?.stop();
    await etcd?.dispose();
  });

  test('keep every renewed lease, and expire every other in time, when the leader is killed', async () => {
    const load = await ClusterLoad.start(cluster, 1, { keptLeases: 20, keptTtlMs });
    const abandoned = new AbandonedLeases(abandonedTtlMs);
    await abandoned.abandon(cluster.members, 20, 200_000n);
    const stalls = new StallMeter(() => cluster.pids);
    const old = await cluster.leader();
    const { epoch } = await old.leadership();
    await old.stop('SIGKILL');
    const leader = await cluster.leader();
    expect((await leader.leadership()).epoch).toBeGreaterThan(epoch);
    await abandoned.check(
      load.watchOf(leader),
      (fromMs, toMs) => (abandonedTtlMs * 5) / 3 + 3_000 + stalls.between(fromMs, toMs),
    );
    stalls.stop();
    await load.finish();
  });
});
