import { hasEtcd, startEtcdCluster } from '@tenure/test-support';
import { expect, inject, test } from 'vitest';
import { ClusterLoad } from './cluster-load.ts';
import { Cluster } from './cluster.ts';

const writes = { commit: 15, ci: 15, soak: 40 }[inject('effort')];

test.skipIf(!hasEtcd())(
  'three servers lose nothing when the members of an etcd of three are killed, one by one and two at once',
  async () => {
    const members = await startEtcdCluster();
    const endpoints = members.map(({ endpoint }) => endpoint);
    // Each server connects to a different member first.
    const optionsOf = (at: number) => {
      const order = [...endpoints.slice(at), ...endpoints.slice(0, at)];
      return { name: `s${at + 1}`, engine: `etcd://${order.join(',')}/tenure` };
    };
    let cluster: Cluster | undefined;
    let load: ClusterLoad | undefined;
    try {
      cluster = await Cluster.start([0, 1, 2].map(optionsOf));
      load = await ClusterLoad.start(cluster, 1);
      for (const member of members) {
        await load.progress(writes);
        await member.kill();
        await load.progress(writes);
        await member.start();
      }
      await load.progress(writes);
      const [one, two] = members;
      await Promise.all([one?.kill(), two?.kill()]);
      const [asked] = cluster.members;
      const read = asked?.kv.range({ key: Buffer.from('any') }, { deadlineMs: 2_000 });
      await expect(read).rejects.toThrow(/deadline exceeded/i);
      await Promise.all([one?.start(), two?.start()]);
      await load.progress(writes);
      expect(cluster.members).toHaveLength(3);
      await load.finish();
    } finally {
      await load?.stop();
      await cluster?.stop();
      await Promise.all(members.map((member) => member.dispose()));
    }
  },
);
