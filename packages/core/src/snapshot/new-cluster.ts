import type { State } from '../state-machine/state.ts';

/** A cluster that begins with the state of a snapshot. */
export interface NewCluster {
  readonly clusterId: bigint;
  /** The shared secret of its servers. */
  readonly secret: string;
  /**
   * Whether no write can have been acknowledged after the snapshot. If one can, a lease may have been renewed, so each
   * lease gets its full TTL again.
   */
  readonly isFinal: boolean;
}

/**
 * Turns the state of a snapshot into the state of a cluster without a leader yet. Revisions, keys and leases stay.
 * Epoch and cluster time stay, so that the first claim sets the lease deadlines as any change of leader does. The index
 * stays, so that no renewIndex of a lease occurs twice. The members, the leader and the secret are removed: the servers
 * of the former cluster are not members of this one, and neither cluster accepts the other's servers. Alarms stay,
 * since they describe the state.
 */
export function becomeNewCluster({ cluster, leases }: State, { clusterId, secret, isFinal }: NewCluster): void {
  cluster.clusterId = clusterId;
  cluster.secret = secret;
  cluster.leader = '';
  cluster.leaderLeaseMs = 0;
  cluster.successor = 0n;
  cluster.members = [];
  if (isFinal) return;
  for (const lease of leases.freeze()()) {
    leases.replace({ ...lease, liveEpoch: cluster.epoch, deadlineMs: undefined });
  }
}
