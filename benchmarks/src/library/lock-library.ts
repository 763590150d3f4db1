/** A held lock. */
export interface Held {
  release(): Promise<unknown>;
}

/** A library as used by one process, with its own connections. */
export interface Locker {
  /** Acquires the lock of a name, which is renewed from then on. Waits in the library's way while it is held. */
  readonly acquire: (name: string) => Promise<Held>;
  /**
   * For libraries that wait with another API than `acquire`: the lock for a waiter and for the holder that it waits
   * for. Without it the same as `acquire`.
   */
  readonly acquireInLine?: (name: string) => Promise<Held>;
  close(): Promise<void>;
}

/** A store that has just started, with the library on it. */
export interface LockStore {
  /** Another client, as in another process. */
  open(options: { readonly ttlMs: number }): Promise<Locker>;
  /** The requests sent to the store since the start: statements, commands, calls or messages. */
  requests(): Promise<number>;
  stop(): Promise<void>;
}

/** One row of the table. */
export interface LockLibrary {
  readonly name: string;
  readonly store: string;
  /** The unit in which the requests are counted. */
  readonly counted: string;
  start(): Promise<LockStore>;
}
