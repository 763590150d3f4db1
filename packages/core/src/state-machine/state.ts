import { LeaseCollection } from '../lease/lease-collection.ts';
import type { LeaseChange } from '../lease/lease-types.ts';
import { KeyValueStore } from '../mvcc/key-value-store.ts';
import { emptyCluster } from './cluster-state.ts';
import type { ClusterState } from './cluster-state.ts';

/** Everything that commands read and change. Handlers get it whole; nobody else does. */
export interface State {
  readonly cluster: ClusterState;
  readonly leases: LeaseCollection;
  readonly store: KeyValueStore;
}

/** What one entry is doing, for its commands. */
export interface EntryContext {
  readonly index: number;
  readonly leaseChanges: LeaseChange[];
  /** Whether somebody waits for the response to the command at this place. */
  readonly isAwaited: (position: number) => boolean;
}

export function emptyState(): State {
  const leases = new LeaseCollection();
  return { cluster: emptyCluster(), leases, store: new KeyValueStore(leases) };
}
