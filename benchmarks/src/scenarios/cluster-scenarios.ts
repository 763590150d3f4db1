import type { Scenario } from '../scenario.ts';
import type { MeasuredCluster } from '../servers/measured-cluster.ts';
import { clusterFailover } from './cluster-failover.ts';
import { clusterLatency } from './cluster-latency.ts';
import { clusterLeaseGrant } from './cluster-lease-grant.ts';
import { clusterPut } from './cluster-put.ts';
import { clusterRange } from './cluster-range.ts';

/** Three servers, in the order of the table. */
export const clusterScenarios: readonly Scenario<MeasuredCluster>[] = [
  clusterPut('leader'),
  clusterPut('all'),
  clusterLeaseGrant('leader'),
  clusterLeaseGrant('all'),
  clusterRange('leader'),
  clusterRange('all'),
  clusterLatency('leader'),
  clusterLatency('all'),
  clusterFailover,
];
