import type { NodeClock } from '@tenure/test-support';

/** A renewal that has reached the socket of a process and has not been answered. */
export interface Arrival {
  readonly process: NodeClock;
  readonly atMs: number;
  /** Whether its connection broke before the process read it. */
  readonly isLost: () => boolean;
}

/** The unanswered renewals in the sockets of servers, by lease. */
export class RenewalArrivals {
  readonly #byLease = new Map<bigint, Arrival[]>();

  of(id: bigint): readonly Arrival[] {
    return this.#byLease.get(id) ?? [];
  }

  add(id: bigint, arrival: Arrival): void {
    const known = this.#byLease.get(id);
    if (known === undefined) this.#byLease.set(id, [arrival]);
    else known.push(arrival);
  }

  answered(id: bigint): void {
    this.#byLease.delete(id);
  }
}
