import { clusterLoad } from '../load/cluster-load.ts';
import type { Reach } from '../load/cluster-load.ts';
import { expectWork } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredCluster } from '../servers/measured-cluster.ts';
import { leaseCountOf, leaseGrantRequest, methods } from '../wire/etcd-messages.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const ttlSeconds = 3600;

export function clusterLeaseGrant(reach: Reach): Scenario<MeasuredCluster> {
  return {
    name: `cluster-lease-grant-${reach}`,
    work: `LeaseGrant; ${reach === 'leader' ? 'to the leader' : 'over all servers'}`,
    unit: '1/s',
    rounds: 3,
    target: { kind: 'ratioAtLeast', bound: 1.5 },
    async measure(cluster, { quick }) {
      const framed = frame(leaseGrantRequest(ttlSeconds));
      const load = { path: methods.leaseGrant, framedRequest: () => framed };
      const { perSecond, requestsWithWarmUp, details } = await clusterLoad(cluster, reach, load, quick);
      const connection = await GrpcConnection.open(await cluster.leader());
      const leases = leaseCountOf(await connection.unary(methods.leaseLeases, Buffer.alloc(0)));
      connection.close();
      expectWork('leases', leases, requestsWithWarmUp);
      return { value: perSecond, details };
    },
  };
}
