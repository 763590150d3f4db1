import { addressesOf } from '../load/cluster-load.ts';
import type { Reach } from '../load/cluster-load.ts';
import { median, percentile } from '../load/percentile.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredCluster } from '../servers/measured-cluster.ts';
import { methods, putRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const message = putRequest('k'.repeat(16), 'v'.repeat(64));

/** One client, one put at a time; over all servers it uses them in turn. */
export function clusterLatency(reach: Reach): Scenario<MeasuredCluster> {
  return {
    name: `cluster-latency-${reach}`,
    work: `Latency of a single client's put, median; ${reach === 'leader' ? 'to the leader' : 'over all servers'}`,
    unit: 'ms',
    rounds: 3,
    target: { kind: 'ratioAtMost', bound: 1.5 },
    async measure(cluster, { quick }) {
      const addresses = await addressesOf(cluster, reach);
      const connections = await Promise.all(addresses.map((address) => GrpcConnection.open(address)));
      const [warmUp, counted] = quick ? [50, 100] : [600, 1500];
      const latenciesMs: number[] = [];
      for (let put = 0; put < warmUp + counted; put += 1) {
        const startedMs = performance.now();
        await connections[put % connections.length]?.unary(methods.put, message);
        if (put >= warmUp) latenciesMs.push(performance.now() - startedMs);
      }
      for (const connection of connections) connection.close();
      return { value: median(latenciesMs), details: { 'p99, ms': percentile(latenciesMs, 0.99) } };
    },
  };
}
