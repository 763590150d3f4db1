import type { AcquireOptions } from './acquire-options.ts';
import type { Hold, ReleaseOptions } from './hold.ts';
import type { LeaseListener } from './lease-listener.ts';

/**
 * A lease by name, which this process may or may not hold. All handles of one name from one manager share the hold, so
 * it is for work of the process as a whole. Two tasks that must not run at once use `acquire` of the manager, which
 * gives a hold to only one of them.
 */
export interface LeaseHandle {
  readonly name: string;
  /** The hold, while it is held. */
  readonly hold: Hold | undefined;
  /** Whether this process should hold it: see `loadBalanced` and `eligible`. Without I/O. */
  shouldHold(): boolean;
  /** Without I/O. */
  isHeld(): boolean;
  /**
   * Returns the existing hold, or a new one. Null if the lease does not become free within the wait time (by default
   * none), or if this process should not hold it. Concurrent calls make one entry.
   */
  acquire(options?: AcquireOptions): Promise<Hold | null>;
  /** False if it was not held. */
  release(options?: ReleaseOptions): Promise<boolean>;
  /** Listens to this name's shared hold only. If it is held already, `afterAcquire` is called at once. */
  addListener(listener: LeaseListener): () => void;
}
