/**
 * The cluster time at which past epochs ended. The deadline of a lease that was last in memory in such an epoch counts
 * from that time. An epoch's end is kept while such a lease exists, so a change of leader costs nothing per lease.
 */
export class EpochEnds {
  readonly #ends: Map<number, number>;
  /** For each epoch, the number of leases whose deadline is in memory, or was in memory when the epoch ended. */
  readonly #leases = new Map<number, number>();
  #epoch: number;

  constructor(epoch = 0, ends: Iterable<readonly [number, number]> = []) {
    this.#epoch = epoch;
    this.#ends = new Map(ends);
  }

  /** The current epoch ends at cluster time `timeMs`, and `epoch` begins. */
  begin(epoch: number, timeMs: number): void {
    if (this.#leases.has(this.#epoch)) this.#ends.set(this.#epoch, timeMs);
    this.#epoch = epoch;
  }

  /** Undefined for the current epoch. */
  endOf(epoch: number): number | undefined {
    return this.#ends.get(epoch);
  }

  /** A lease got an in-memory deadline in `epoch`. */
  retain(epoch: number): void {
    this.#leases.set(epoch, (this.#leases.get(epoch) ?? 0) + 1);
  }

  /** A lease of `epoch` was checkpointed or removed. */
  release(epoch: number): void {
    const left = (this.#leases.get(epoch) ?? 0) - 1;
    if (left > 0) {
      this.#leases.set(epoch, left);
      return;
    }
    this.#leases.delete(epoch);
    this.#ends.delete(epoch);
  }

  /** Pairs of epoch and cluster time, ordered by epoch. */
  entries(): [number, number][] {
    return [...this.#ends].sort((a, b) => a[0] - b[0]);
  }
}
