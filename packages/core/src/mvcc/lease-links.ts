import type { KeyEntry } from './key-entry.ts';

/** The leases as the key store sees them. A key is attached to at most one lease. */
export interface LeaseLinks {
  has(id: bigint): boolean;
  /** The lease must exist. */
  attach(id: bigint, entry: KeyEntry): void;
  /** Does nothing when the lease no longer exists. */
  detach(id: bigint, entry: KeyEntry): void;
}
