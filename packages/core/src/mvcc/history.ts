import type { KvEvent } from './kv-types.ts';

/** The events, revision by revision. A watcher is a cursor into it. */
export interface History {
  /** The newest revision; 1 in an empty store. */
  readonly currentRevision: number;
  /** Revisions below it are compacted. -1 until the first compaction. */
  readonly compactRevision: number;
  /**
   * The events of one revision, in write order; none for a revision without events (the first one). Throws outside of
   * compactRevision..currentRevision. At compactRevision itself prevKv is no longer known.
   */
  eventsAt(revision: number): readonly KvEvent[];
  /**
   * A revision such that no key of etcd's range (key, rangeEnd) has changed in [from, that revision); Infinity when
   * none has changed since. It may be earlier than the next change, down to `from` itself, when the exact answer is
   * expensive: a reader may skip to it and must continue the search from there. `from` is at least compactRevision.
   */
  unchangedBefore(key: string, rangeEnd: string, from: number): number;
}
