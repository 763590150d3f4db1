/** How long the engine waits for a database, and how often it looks. */
export interface PostgresTiming {
  /** A host that does not answer is given up after this, and the next one is tried. */
  readonly connectTimeoutMs: number;
  /** What is not an append is small; a connection on which it takes longer is held for dead. */
  readonly queryTimeoutMs: number;
  /** An append that has no answer after this is looked after, and again each time this has passed. */
  readonly watchIntervalMs: number;
  /** A follower looks for entries this often, in case a notification was lost. */
  readonly pollIntervalMs: number;
  /**
   * How long an end of the log that nobody has vouched for is left alone before it is proved to be durable. Whoever
   * appended it tells of it within some milliseconds.
   */
  readonly proofGraceMs: number;
  /** How long a server may go on after a newer one has changed the schema under it, if its connections stand. */
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
