import type { State } from '../state-machine/state.ts';

/** The cluster that begins with the state of a snapshot. */
export interface NewCluster {
  readonly clusterId: bigint;
  /** What its servers will know each other by. */
  readonly secret: string;
  /**
   * Whether nothing can have been acknowledged after the snapshot. If something can, a lease may have been renewed,
   * so each gets its whole TTL again.
   */
  readonly isFinal: boolean;
}

/**
 * Makes the state of a snapshot into that of a cluster which nobody has led yet. Revisions, keys and leases stay. Epoch
 * and cluster time stay, so that the first claim dates the leases as any change of leader does, and so does the index,
 * so that no lease meets its renewIndex again. What names servers goes: those of the former cluster are no members of
 * this one, and neither side takes the other for one of its own. Alarms stay, since they speak of the state.
 */
export function becomeNewCluster({ cluster, leases }: State, { clusterId, secret, isFinal }: NewCluster): void {
  cluster.clusterId = clusterId;
  cluster.secret = secret;
  cluster.leader = '';
  cluster.rightMs = 0;
  cluster.successor = 0n;
  cluster.members = [];
  if (isFinal) return;
  for (const lease of leases.freeze()()) {
    leases.replace({ ...lease, liveEpoch: cluster.epoch, deadlineMs: undefined });
  }
}
