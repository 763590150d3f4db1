import type { LeaseBackend } from '../../backend/lease-backend.ts';

/** What `watch` may hint of, done by another backend on the same store. */
export type Hint = 'came' | 'updated' | 'left' | 'expired';

/** What the suite may do to a store beyond opening backends on it. */
export type StoreHook = 'restart' | 'killConnections' | 'pause';

/** Where the backends under test keep their leases: a database of the test's own, an emulator, a map. */
export interface ConformanceStore {
  /**
   * Another backend on the same store, as another process would open it. A store that lives within the process and has
   * one backend only may give the same one again. The suite closes what it was given, possibly more than once.
   */
  open(): LeaseBackend | Promise<LeaseBackend>;
  /** Ends what keeps the leases and starts it again on the same data. Resolves when it answers again. */
  restart?(): Promise<void>;
  /** Breaks off all connections that backends have now; new ones are let through. */
  killConnections?(): Promise<void>;
  /** From now on no call is answered and no connection ends, until the function that it gives is called. */
  pause?(): Promise<() => Promise<void>>;
  /** Ends the store. All backends have been closed before. */
  dispose(): Promise<void>;
}
