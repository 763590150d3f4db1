import type { AcquireOptions } from './acquire-options.ts';
import type { Hold, ReleaseOptions } from './hold.ts';
import type { LeaseListener } from './lease-listener.ts';

/**
 * A lease by name, which may be held by this process or not. All handles of one name that one manager gives share the
 * hold, so it is for what the process does as a whole; two tasks that must not run at once use `acquire` of the
 * manager, which gives a hold to one of them only.
 */
export interface LeaseHandle {
  readonly name: string;
  /** The hold, while it is held. */
  readonly hold: Hold | undefined;
  /** Whether this process is the one that should have it: see `loadBalanced` and `eligible`. Without I/O. */
  shouldHold(): boolean;
  /** Without I/O. */
  isHeld(): boolean;
  /**
   * The hold that is there already, or a new one, or null if it is not to be had within the time that the caller wants
   * to wait (by default none), or if this process should not hold it. However many call at once, one entry is made.
   */
  acquire(options?: AcquireOptions): Promise<Hold | null>;
  /** False if it was not held. */
  release(options?: ReleaseOptions): Promise<boolean>;
  /** Of this name's shared hold only. If it is held already, `afterAcquire` is called at once. */
  addListener(listener: LeaseListener): () => void;
}
