/** Where renewals are handed in, on whichever server they arrive. */
export interface LeaseDesk {
  /**
   * The granted TTL in milliseconds, or 0 if the lease does not exist. A number at once where the memory of the
   * leader is here; a promise where the log or another server decides, which may wait for the next leader.
   */
  renew(id: bigint): number | Promise<number>;
  /**
   * What the header of a reply must name at least: no reply goes back behind the revision at which the leader
   * answered.
   */
  revision(): number;
}
