import { SlicedSort, type Lease } from '@tenure/core';
import { leaseListReply, type ListedLease, type ListMessage, type ResponseHeader } from '@tenure/codec';
import type { Lessor } from '../leases/lessor.ts';

/** Leases processed by one step. */
const leasesAStep = 1_000;

/**
 * The list of all leases, built in steps: ordered by expiry, and by grant for the same expiry. A million of them are
 * numbers in arrays and not objects, which the garbage collector would have to visit while every client waits.
 */
export class LeaseList {
  readonly #leases: Iterator<Lease>;
  readonly #lessor: () => Lessor;
  readonly #ids: BigInt64Array;
  readonly #deadlinesMs: Float64Array;
  readonly #renewIndexes: Float64Array;
  /** Of each lease, when requested. */
  readonly #details: ListedLease[] | undefined;
  readonly #places: number[] = [];
  #sort: SlicedSort<number> | undefined;

  /** `leases` has at most `count` leases. */
  constructor(leases: Iterator<Lease>, count: number, lessor: () => Lessor, withDetails: boolean) {
    this.#leases = leases;
    this.#lessor = lessor;
    this.#ids = new BigInt64Array(count);
    this.#deadlinesMs = new Float64Array(count);
    this.#renewIndexes = new Float64Array(count);
    this.#details = withDetails ? [] : undefined;
  }

  /** Returns whether the list is complete. */
  step(): boolean {
    if (this.#sort === undefined && this.#collect()) {
      const [deadlinesMs, renewIndexes] = [this.#deadlinesMs, this.#renewIndexes];
      this.#sort = new SlicedSort(this.#places, (a, b) => {
        return deadlinesMs[a]! - deadlinesMs[b]! || renewIndexes[a]! - renewIndexes[b]!;
      });
    }
    return this.#sort?.step(leasesAStep) ?? false;
  }

  /** Once `step` has returned true. */
  message(header: ResponseHeader): ListMessage<number> {
    const [ids, details] = [this.#ids, this.#details];
    return leaseListReply(header, this.#sort?.sorted ?? [], (place) => {
      return details?.[place] ?? { id: ids[place]!, ...withoutDetails };
    });
  }

  #collect(): boolean {
    for (let left = leasesAStep; left > 0; left -= 1) {
      const next = this.#leases.next();
      if (next.done === true) return true;
      const { id, ttlMs, label, renewIndex } = next.value;
      const place = this.#places.length;
      this.#places.push(place);
      this.#ids[place] = id;
      this.#deadlinesMs[place] = this.#lessor().deadlineMs(id) ?? 0;
      this.#renewIndexes[place] = renewIndex;
      this.#details?.push({ id, remainingMs: this.#lessor().remainingMs(id) ?? 1, grantedMs: ttlMs, label });
    }
    return false;
  }
}

const withoutDetails = { remainingMs: 0, grantedMs: 0, label: '' } as const;
