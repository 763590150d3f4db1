/** The leader's view of the cluster, as sent to its followers. */
export interface LeaderView {
  /** The end of the log when the message was sent. */
  readonly index: number;
  /** Members that have sent the leader nothing for a while. */
  readonly silent: readonly bigint[];
}
