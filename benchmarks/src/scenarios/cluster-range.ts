import { clusterLoad } from '../load/cluster-load.ts';
import type { Reach } from '../load/cluster-load.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredCluster } from '../servers/measured-cluster.ts';
import { methods, putRequest, rangeCountOf, rangeRequest } from '../wire/etcd-messages.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const key = 'k'.repeat(16);

export function clusterRange(reach: Reach): Scenario<MeasuredCluster> {
  return {
    name: `cluster-range-${reach}`,
    work: `Range of one key, linearizable; ${reach === 'leader' ? 'to the leader' : 'over all servers'}`,
    unit: '1/s',
    rounds: 3,
    target: { kind: 'ratioAtLeast', bound: 1 },
    async measure(cluster, { quick }) {
      const connection = await GrpcConnection.open(await cluster.leader());
      await connection.unary(methods.put, putRequest(key, 'v'.repeat(64)));
      connection.close();
      const framed = frame(rangeRequest(key));
      const onReply = (_index: number, reply: Buffer) => {
        if (rangeCountOf(reply) !== 1) throw new Error('a read did not find the key that was written before');
      };
      const load = { path: methods.range, framedRequest: () => framed, onReply };
      const { perSecond, details } = await clusterLoad(cluster, reach, load, quick);
      return { value: perSecond, details };
    },
  };
}
