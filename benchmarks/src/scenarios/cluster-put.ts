import { clusterLoad } from '../load/cluster-load.ts';
import type { Reach } from '../load/cluster-load.ts';
import { expectWork } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredCluster } from '../servers/measured-cluster.ts';
import { methods, putRequest, rangeRequest, revisionOf } from '../wire/etcd-messages.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const distinctKeys = 10_000;
const value = 'v'.repeat(64);

export function clusterPut(reach: Reach): Scenario<MeasuredCluster> {
  return {
    name: `cluster-put-${reach}`,
    work: `Put, 16-byte key of 10,000, 64-byte value; ${reach === 'leader' ? 'to the leader' : 'over all servers'}`,
    unit: '1/s',
    rounds: 3,
    target: { kind: 'ratioAtLeast', bound: 0.5 },
    async measure(cluster, { quick }) {
      const framed = Array.from({ length: distinctKeys }, (_, key) => frame(putRequest(keyOf(key), value)));
      const framedRequest = (index: number) => framed[index % distinctKeys] ?? Buffer.alloc(0);
      const connection = await GrpcConnection.open(await cluster.leader());
      const before = revisionOf(await connection.unary(methods.range, rangeRequest('k')));
      const load = { path: methods.put, framedRequest };
      const { perSecond, requestsWithWarmUp, details } = await clusterLoad(cluster, reach, load, quick);
      const after = revisionOf(await connection.unary(methods.range, rangeRequest('k')));
      connection.close();
      expectWork('revisions', after - before, requestsWithWarmUp);
      return { value: perSecond, details };
    },
  };
}

function keyOf(index: number): string {
  return `k${String(index).padStart(15, '0')}`;
}
