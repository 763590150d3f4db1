/** Timeouts and intervals of the engine. */
export interface PostgresTiming {
  /** The engine gives up on a host without an answer after this time, and tries the next one. */
  readonly connectTimeoutMs: number;
  /** Every query except an append is small; a connection on which it takes longer counts as dead. */
  readonly queryTimeoutMs: number;
  /** An append without a response is checked after this time, and again at this interval. */
  readonly watchIntervalMs: number;
  /** A follower polls for entries at this interval, in case a notification was lost. */
  readonly pollIntervalMs: number;
  /**
   * How long to wait for a report that the end of the log is durable before making a proof. The appending server
   * reports it within some milliseconds.
   */
  readonly proofGraceMs: number;
  /** How long a server may continue after a newer one has changed the schema, if its connections stay open. */
  readonly schemaCheckIntervalMs: number;
}

export const defaultTiming: PostgresTiming = {
  connectTimeoutMs: 3_000,
  queryTimeoutMs: 5_000,
  watchIntervalMs: 2_000,
  pollIntervalMs: 250,
  proofGraceMs: 50,
  schemaCheckIntervalMs: 2_000,
};
