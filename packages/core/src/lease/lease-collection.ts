import { BTree, compareBigints } from '../mvcc/btree.ts';
import type { IntervalSet } from '../mvcc/interval-set.ts';
import type { KeyEntry } from '../mvcc/key-entry.ts';
import type { LeaseLinks } from '../mvcc/lease-links.ts';
import { attachKey, countKeys, detachKey, firstKeyOutside, frozenKeys, visitKeys } from './attached-keys.ts';
import type { AttachedKeys } from './attached-keys.ts';
import { EpochEnds } from './epoch-ends.ts';
import { KeyCoverage } from './key-coverage.ts';
import type { Lease } from './lease-types.ts';

/**
 * Memory of one lease besides its label: record, slot, id. etcd counts 64 bytes per lease, but etcd's quota bounds a
 * file. Tenure's quota bounds memory, so it must be reached before memory is exhausted.
 */
export const leaseOverheadBytes = 192;

/** The keys of a lease with fewer are looked at each time: that takes less than what would be remembered. */
const fewKeys = 32;

/**
 * The slot of one lease. The slot is replaced when the lease changes, so that a clone of the tree keeps the old lease.
 */
interface Held {
  readonly lease: Lease;
  /** Changed in place, so a reader of a clone must not use it. */
  attached: AttachedKeys;
  /** Of the keys attached now; undefined until it was asked for while there are many. */
  coverage: KeyCoverage | undefined;
}

/**
 * The leases by id, and the keys attached to each. The callers decide when a lease may be granted, renewed or removed.
 */
export class LeaseCollection implements LeaseLinks {
  readonly #leases: BTree<bigint, Held>;
  readonly #epochEnds: EpochEnds;
  #labelBytes = 0;

  constructor(epochEnds = new EpochEnds(), leases: Iterable<Lease> = []) {
    this.#epochEnds = epochEnds;
    this.#leases = new BTree<bigint, Held>(undefined, compareBigints);
    for (const lease of leases) this.add(lease);
  }

  get size(): number {
    return this.#leases.size;
  }

  /** An estimate of the memory of all leases, without their keys. */
  get bytes(): number {
    return this.#leases.size * leaseOverheadBytes + this.#labelBytes;
  }

  get epochEnds(): EpochEnds {
    return this.#epochEnds;
  }

  has(id: bigint): boolean {
    return this.#leases.has(id);
  }

  get(id: bigint): Lease | undefined {
    return this.#leases.get(id)?.lease;
  }

  /** The leases at the moment of the call, ordered by id, unaffected by later changes. Costs no copy. */
  freeze(): () => IterableIterator<Lease> {
    const frozen = this.#leases.clone();
    return function* leases(): IterableIterator<Lease> {
      for (const held of frozen.values()) yield held.lease;
    };
  }

  /** The id must not be in use. */
  add(lease: Lease): void {
    this.#leases.set(lease.id, { lease, attached: undefined, coverage: undefined });
    this.#labelBytes += labelBytes(lease);
    if (lease.deadlineMs === undefined) this.#epochEnds.retain(lease.liveEpoch);
  }

  /** The lease of that id must exist. Its keys stay attached. */
  replace(lease: Lease): void {
    const held = this.#held(lease.id);
    // Retain the new epoch before releasing the old one: the end of an epoch must not be dropped in between.
    if (lease.deadlineMs === undefined) this.#epochEnds.retain(lease.liveEpoch);
    if (held.lease.deadlineMs === undefined) this.#epochEnds.release(held.lease.liveEpoch);
    this.#leases.set(lease.id, { ...held, lease });
  }

  /**
   * Removes a lease if it exists and, where `renewIndex` is given, still has that renewIndex. Returns whether it was
   * removed; if so, `orphan` is called for each of its keys, in byte order.
   */
  remove(id: bigint, renewIndex: number | undefined, orphan: (entry: KeyEntry) => void): boolean {
    const held = this.#leases.get(id);
    if (held === undefined || (renewIndex !== undefined && held.lease.renewIndex !== renewIndex)) return false;
    this.#leases.delete(id);
    this.#labelBytes -= labelBytes(held.lease);
    if (held.lease.deadlineMs === undefined) this.#epochEnds.release(held.lease.liveEpoch);
    visitKeys(held.attached, orphan);
    return true;
  }

  attach(id: bigint, entry: KeyEntry): void {
    const held = this.#held(id);
    held.attached = attachKey(held.attached, entry);
    held.coverage?.attached(entry.head.key);
  }

  detach(id: bigint, entry: KeyEntry): void {
    const held = this.#leases.get(id);
    if (held === undefined) return;
    held.attached = detachKey(held.attached, entry);
    held.coverage?.detached(entry.head.key);
  }

  /** The number of keys attached to the lease; 0 for a lease that does not exist. */
  keyCountOf(id: bigint): number {
    return countKeys(this.#leases.get(id)?.attached);
  }

  /** In byte order, at the moment of the call; none for a lease that does not exist. */
  keysOf(id: bigint): Iterator<string> {
    return frozenKeys(this.#leases.get(id)?.attached);
  }

  /** Some key of the lease that is in none of the intervals; see KeyCoverage. */
  keyOutside(id: bigint, intervals: IntervalSet): string | undefined {
    const held = this.#leases.get(id);
    if (held === undefined) return undefined;
    if (countKeys(held.attached) < fewKeys) return firstKeyOutside(held.attached, intervals);
    held.coverage ??= new KeyCoverage();
    return held.coverage.keyOutside(held.attached, intervals);
  }

  /** Cluster time; undefined while the deadline is in the leader's memory in the current epoch. */
  deadlineOf(lease: Lease): number | undefined {
    if (lease.deadlineMs !== undefined) return lease.deadlineMs;
    const endMs = this.#epochEnds.endOf(lease.liveEpoch);
    return endMs === undefined ? undefined : endMs + lease.ttlMs;
  }

  #held(id: bigint): Held {
    const held = this.#leases.get(id);
    if (held === undefined) throw new Error(`leases: lease ${id} is not there although it was checked before`);
    return held;
  }
}

/** A string takes up to two bytes per char. */
function labelBytes(lease: Lease): number {
  return lease.label.length * 2;
}
