import type { LeaseClock } from './lease-clock.ts';

/**
 * Cluster time as the leader of an epoch writes it to entries: the value at its claim plus its own lease clock since it
 * applied that claim. The two differ by a constant, so a deadline on the lease clock has exactly
 * one value in cluster time.
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

  /** The time for an entry whose append begins now. Rounded down, since cluster time must not run ahead. */
  nowMs(): number {
    return Math.floor(this.#claimClusterMs + this.#leaseClock.nowMs() - this.#claimLeaseMs);
  }

  /** A deadline of the lease clock in cluster time. Rounded up, since a lease must not expire early. */
  toClusterMs(leaseMs: number): number {
    return Math.ceil(this.#claimClusterMs + leaseMs - this.#claimLeaseMs);
  }

  /** A deadline in cluster time on the lease clock. */
  toLeaseMs(clusterMs: number): number {
    return this.#claimLeaseMs + clusterMs - this.#claimClusterMs;
  }
}
