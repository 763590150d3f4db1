import type { KvEvent } from './kv-types.ts';

/** What happened, revision by revision: a watcher is a cursor into it. */
export interface History {
  /** The newest revision; 1 in an empty store. */
  readonly currentRevision: number;
  /** Revisions below it are gone. -1 until the first compaction. */
  readonly compactRevision: number;
  /**
   * The events of one revision, in the order in which they were written; none for a revision without any (the first
   * one). Throws outside of compactRevision..currentRevision. At compactRevision itself prevKv is not known any more.
   */
  eventsAt(revision: number): readonly KvEvent[];
  /**
   * A revision such that no key of etcd's range (key, rangeEnd) has changed in [from, that revision); Infinity when
   * none has changed since. It may be earlier than the next change, down to `from` itself, when that is dear to find:
   * so a reader may skip to it, and goes on looking from there. `from` is at least compactRevision.
   */
  unchangedBefore(key: string, rangeEnd: string, from: number): number;
}
