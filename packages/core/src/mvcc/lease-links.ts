import type { KeyEntry } from './key-entry.ts';

/** What the key store needs to know of leases, and tells them. A key is linked to at most one lease. */
export interface LeaseLinks {
  has(id: bigint): boolean;
  /** The lease must exist. */
  attach(id: bigint, entry: KeyEntry): void;
  /** Does nothing when the lease is gone. */
  detach(id: bigint, entry: KeyEntry): void;
}
