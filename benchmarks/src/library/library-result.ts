/** The results of one library on one store, as stored in library-results.json. */
export interface LibraryResult {
  readonly name: string;
  readonly store: string;
  readonly counted: string;
  /** Acquired and released again, one after the other and many at once, in 1/s. */
  readonly turns: { readonly one: number; readonly many: number };
  readonly wakeUpMs: { readonly p50: number; readonly p99: number; readonly count: number };
  /** For each minute that the locks are held. */
  readonly holding: { readonly cpuMs: number; readonly requestsPerLock: number };
}

export interface LibraryRun {
  readonly date: string;
  readonly processor: string;
  readonly cores: number;
  readonly node: string;
  readonly versions: string;
  readonly loadBefore: number;
  readonly loadAfter: number;
  readonly results: readonly LibraryResult[];
}
