/** A lock that somebody has. */
export interface Held {
  release(): Promise<unknown>;
}

/** A library as one process uses it, with connections of its own. */
export interface Locker {
  /** Takes the lock of a name, which is renewed from then on. Waits, in the way of the library, while it is taken. */
  readonly acquire: (name: string) => Promise<Held>;
  /**
   * Where waiting is made of something else than `acquire`: the lock, for one that waits and one that it waits for.
   * Without it the same as `acquire`.
   */
  readonly acquireInLine?: (name: string) => Promise<Held>;
  close(): Promise<void>;
}

/** A store that has just started, with the library on it. */
export interface LockStore {
  /** Another client, as another process would have it. */
  open(options: { readonly ttlMs: number }): Promise<Locker>;
  /** What has been sent to the store since the start: statements, commands, calls or messages. */
  requests(): Promise<number>;
  stop(): Promise<void>;
}

/** One row of the table. */
export interface LockLibrary {
  readonly name: string;
  readonly store: string;
  /** By what the requests are counted. */
  readonly counted: string;
  start(): Promise<LockStore>;
}
