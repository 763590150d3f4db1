import { LeaseCollection } from '../lease/lease-collection.ts';
import type { LeaseChange } from '../lease/lease-types.ts';
import { KeyValueStore } from '../mvcc/key-value-store.ts';
import { emptyCluster } from './cluster-state.ts';
import type { ClusterState } from './cluster-state.ts';

/** The state that commands read and change. Only command handlers get it whole. */
export interface State {
  readonly cluster: ClusterState;
  readonly leases: LeaseCollection;
  readonly store: KeyValueStore;
}

/** The effects of one entry, collected by its commands. */
export interface EntryContext {
  readonly index: number;
  readonly leaseChanges: LeaseChange[];
  /** Whether a client waits for the response to the command at this index. */
  readonly isAwaited: (position: number) => boolean;
}

export function emptyState(): State {
  const leases = new LeaseCollection();
  return { cluster: emptyCluster(), leases, store: new KeyValueStore(leases) };
}
