/** Every bound of the watch service, named and in one place. */
export interface WatchLimits {
  /** Watches on one stream, those counted that compaction has ended and the client has not cancelled yet. */
  readonly maxWatchersPerStream: number;
  /** Watches on all streams of this server; what it protects is memory, about half a KiB a watch. */
  readonly maxWatchersPerServer: number;
  /** The keys and range ends of all watches together, in bytes: a watch on a long key holds that key. */
  readonly maxWatchedKeyBytes: number;
  /** Answers to requests that may wait for a stream's reader; from there on its requests are not read. */
  readonly maxUnsentReplies: number;
  /**
   * Keys and values in one response, in bytes, from which on it ends with the revision that it has come to: a response
   * of the history has less than this and one revision. etcd puts up to 1000 revisions into one, however large: a
   * client that keeps to the limits of gRPC cannot take that, and a server would hold it once for each stream that
   * reads the history. Nothing is promised of how much comes in one response, only that it has whole revisions in
   * order: a client goes on behind the last of them, whichever response was the last that it had. A revision is split
   * only where the client asks for it (`fragment`).
   */
  readonly maxResponseBytes: number;
  /** Events looked at before something else gets its turn. */
  readonly maxEventsPerStep: number;
  /** What a fragment may have beyond the largest request, in bytes; etcd's value. */
  readonly fragmentOverheadBytes: number;
  /** How long watches may hold the event loop at once. */
  readonly sliceMs: number;
}

const kibibyte = 1024;

export const defaultWatchLimits: WatchLimits = Object.freeze({
  maxWatchersPerStream: 200_000,
  maxWatchersPerServer: 1_000_000,
  maxWatchedKeyBytes: 256 * 1024 * kibibyte,
  maxUnsentReplies: 128,
  maxResponseBytes: 512 * kibibyte,
  maxEventsPerStep: 4096,
  fragmentOverheadBytes: 512 * kibibyte,
  sliceMs: 4,
});
