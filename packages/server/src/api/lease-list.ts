import { type AccessCheck, type Lease, type Requester, SlicedSort, type StateMachine } from '@tenure/core';
import { leaseListReply, type ListedLease, type ListMessage, type ResponseHeader } from '@tenure/codec';
import type { Lessor } from '../leases/lessor.ts';
import { throwRefused } from './requested.ts';

/** Leases processed by one step; each of their keys, which may have to be looked up, counts as a lease. */
const leasesAStep = 1_000;

export interface LeaseListOptions {
  readonly state: Pick<StateMachine, 'accessOf' | 'keyCountOfLease' | 'leaseCount' | 'leases'>;
  /** Undefined while authentication is disabled. */
  readonly by: Requester | undefined;
  readonly lessor: () => Lessor;
  readonly withDetails: boolean;
}

/**
 * The list of all leases, built in steps: ordered by expiry, and by grant for the same expiry. A million of them are
 * numbers in arrays and not objects, which the garbage collector would have to visit while every client waits.
 *
 * While authentication is enabled, it is refused as a whole, as in etcd, if the requester may not read some key of some
 * lease. Each lease is checked in the step that lists it, by the permissions and the keys of that moment.
 */
export class LeaseList {
  readonly #state: LeaseListOptions['state'];
  readonly #by: Requester | undefined;
  readonly #leases: Iterator<Lease>;
  readonly #lessor: () => Lessor;
  readonly #ids: BigInt64Array;
  readonly #deadlinesMs: Float64Array;
  readonly #renewIndexes: Float64Array;
  /** Of each lease, when requested. */
  readonly #details: ListedLease[] | undefined;
  readonly #places: number[] = [];
  #sort: SlicedSort<number> | undefined;

  constructor({ state, by, lessor, withDetails }: LeaseListOptions) {
    const count = state.leaseCount;
    this.#state = state;
    this.#by = by;
    this.#leases = state.leases();
    this.#lessor = lessor;
    this.#ids = new BigInt64Array(count);
    this.#deadlinesMs = new Float64Array(count);
    this.#renewIndexes = new Float64Array(count);
    this.#details = withDetails ? [] : undefined;
  }

  /** Returns whether the list is complete. Throws GrpcStatus when the requester may not have it. */
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
    const access = this.#state.accessOf(this.#by);
    throwRefused(access?.user());
    for (let left = leasesAStep; left > 0; left -= 1) {
      const next = this.#leases.next();
      if (next.done === true) return true;
      const { id, ttlMs, label, renewIndex } = next.value;
      if (access !== undefined) left -= this.#checkKeys(id, access);
      const place = this.#places.length;
      this.#places.push(place);
      this.#ids[place] = id;
      this.#deadlinesMs[place] = this.#lessor().deadlineMs(id) ?? 0;
      this.#renewIndexes[place] = renewIndex;
      this.#details?.push({ id, remainingMs: this.#lessor().remainingMs(id) ?? 1, grantedMs: ttlMs, label });
    }
    return false;
  }

  /** Returns the number of keys. */
  #checkKeys(id: bigint, access: AccessCheck): number {
    throwRefused(access.readKeysOf(id));
    return this.#state.keyCountOfLease(id);
  }
}

const withoutDetails = { remainingMs: 0, grantedMs: 0, label: '' } as const;
