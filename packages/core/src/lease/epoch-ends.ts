/**
 * The cluster time at which each epoch ended that some lease was last live in: what its deadline counts from. It is
 * kept for as long as such a lease exists, and costs nothing per lease at a change of leader.
 */
export class EpochEnds {
  readonly #ends: Map<number, number>;
  /** How many leases are live, or were live at its end, in each epoch. */
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

  /** A lease became live in `epoch`. */
  retain(epoch: number): void {
    this.#leases.set(epoch, (this.#leases.get(epoch) ?? 0) + 1);
  }

  /** A lease that was live in `epoch` is so no longer, or is gone. */
  release(epoch: number): void {
    const left = (this.#leases.get(epoch) ?? 0) - 1;
    if (left > 0) {
      this.#leases.set(epoch, left);
      return;
    }
    this.#leases.delete(epoch);
    this.#ends.delete(epoch);
  }

  /** Pairs of epoch and cluster time, in order of epochs. */
  entries(): [number, number][] {
    return [...this.#ends].sort((a, b) => a[0] - b[0]);
  }
}
