import type { LeaseClock } from './lease-clock.ts';

/**
 * Cluster time as the leader of an epoch stamps it: the value at its claim plus its own lease clock since it applied
 * that claim (design, section 5). Both are affine in each other, so a deadline on the lease clock has one fixed date
 * in cluster time.
 */
export class ClusterClock {
  readonly #leaseClock: LeaseClock;
  readonly #claimClusterMs: number;
  readonly #claimLeaseMs: number;

  constructor(leaseClock: LeaseClock, claimClusterMs: number) {
    this.#leaseClock = leaseClock;
    this.#claimClusterMs = claimClusterMs;
    this.#claimLeaseMs = leaseClock.nowMs();
  }

  /** The stamp of an entry whose append begins now. Rounded down, since cluster time never leads. */
  nowMs(): number {
    return Math.floor(this.#claimClusterMs + this.#leaseClock.nowMs() - this.#claimLeaseMs);
  }

  /** A deadline of the lease clock as a date. Rounded up, since a lease never expires early. */
  toClusterMs(leaseMs: number): number {
    return Math.ceil(this.#claimClusterMs + leaseMs - this.#claimLeaseMs);
  }

  /** A date as a deadline of the lease clock. */
  toLeaseMs(clusterMs: number): number {
    return this.#claimLeaseMs + clusterMs - this.#claimClusterMs;
  }
}
