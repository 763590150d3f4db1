/** Every limit of the watch service, with a name and in one place. */
export interface WatchLimits {
  /** Watches on one stream, including those ended by compaction that the client has not cancelled yet. */
  readonly maxWatchersPerStream: number;
  /** Watches on all streams of this server; protects memory, about half a KiB per watch. */
  readonly maxWatchersPerServer: number;
  /** The keys and range ends of all watches together, in bytes: a watch on a long key holds that key. */
  readonly maxWatchedKeyBytes: number;
  /** Unread responses to requests on a stream; beyond this its requests are not read. */
  readonly maxUnsentReplies: number;
  /**
   * The size of keys and values from which on a response ends with its current revision: a response from the history
   * has less than this plus one revision. etcd puts up to 1000 revisions of any size into one response: a client with
   * gRPC's default limits cannot receive that, and a server would hold it once for each stream that reads the history.
   * The API only promises whole revisions in order: a client resumes after the last revision, regardless of the
   * response it came in. A revision is split only where the client asks for it (`fragment`).
   */
  readonly maxResponseBytes: number;
  /** Events read before yielding. */
  readonly maxEventsPerStep: number;
  /** The size of a fragment beyond the largest request, in bytes; etcd's value. */
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
