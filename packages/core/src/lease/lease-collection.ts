import { BTree, compareBigints } from '../mvcc/btree.ts';
import type { IntervalSet } from '../mvcc/interval-set.ts';
import type { KeyEntry } from '../mvcc/key-entry.ts';
import type { LeaseLinks } from '../mvcc/lease-links.ts';
import { EpochEnds } from './epoch-ends.ts';
import { HeldLease } from './held-lease.ts';
import type { Lease } from './lease-types.ts';

/**
 * Memory of one lease besides its label, with the leader's part. etcd counts 64 bytes per lease, but etcd's quota
 * bounds a file. Tenure's quota bounds memory, so it must be reached before memory is exhausted.
 */
export const leaseOverheadBytes = 192;

const noKeys: readonly string[] = [];

/**
 * The leases by id, and the keys attached to each. The callers decide when a lease may be granted, renewed or removed.
 */
export class LeaseCollection implements LeaseLinks {
  readonly #leases: BTree<bigint, HeldLease>;
  readonly #epochEnds: EpochEnds;
  #labelBytes = 0;

  constructor(epochEnds = new EpochEnds(), leases: Iterable<Lease> = []) {
    this.#epochEnds = epochEnds;
    this.#leases = new BTree<bigint, HeldLease>(undefined, compareBigints);
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
    return this.#leases.get(id);
  }

  /** The leases at the moment of the call, ordered by id, unaffected by later changes. Costs no copy. */
  freeze(): () => IterableIterator<Lease> {
    const frozen = this.#leases.clone();
    return () => frozen.values();
  }

  /** Returns whether it was added: not if the id is in use. */
  add(lease: Lease): boolean {
    if (!this.#leases.setIfNotPresent(lease.id, new HeldLease(lease))) return false;
    this.#labelBytes += labelBytes(lease);
    if (lease.deadlineMs === undefined) this.#epochEnds.retain(lease.liveEpoch);
    return true;
  }

  /** The lease of that id must exist. Its keys stay attached. */
  replace(lease: Lease): void {
    const held = this.#held(lease.id);
    // Retain the new epoch before releasing the old one: the end of an epoch must not be dropped in between.
    if (lease.deadlineMs === undefined) this.#epochEnds.retain(lease.liveEpoch);
    if (held.deadlineMs === undefined) this.#epochEnds.release(held.liveEpoch);
    this.#leases.set(lease.id, new HeldLease(lease, held));
  }

  /**
   * Removes a lease if it exists and, where `renewIndex` is given, still has that renewIndex. Returns whether it was
   * removed; if so, `orphan` is called for each of its keys, in byte order.
   */
  remove(id: bigint, renewIndex: number | undefined, orphan: (entry: KeyEntry) => void): boolean {
    const held = this.#leases.get(id);
    if (held === undefined || (renewIndex !== undefined && held.renewIndex !== renewIndex)) return false;
    this.#leases.delete(id);
    this.#labelBytes -= labelBytes(held);
    if (held.deadlineMs === undefined) this.#epochEnds.release(held.liveEpoch);
    held.visitKeys(orphan);
    return true;
  }

  attach(id: bigint, entry: KeyEntry): void {
    this.#held(id).attach(entry);
  }

  detach(id: bigint, entry: KeyEntry): void {
    this.#leases.get(id)?.detach(entry);
  }

  /** The number of keys attached to the lease; 0 for a lease that does not exist. */
  keyCountOf(id: bigint): number {
    return this.#leases.get(id)?.keyCount ?? 0;
  }

  /** In byte order, at the moment of the call; none for a lease that does not exist. */
  keysOf(id: bigint): Iterator<string> {
    return this.#leases.get(id)?.frozenKeys() ?? noKeys.values();
  }

  /** Some key of the lease that is in none of the intervals; see KeyCoverage. */
  keyOutside(id: bigint, intervals: IntervalSet): string | undefined {
    return this.#leases.get(id)?.keyOutside(intervals);
  }

  /** Cluster time; undefined while the deadline is in the leader's memory in the current epoch. */
  deadlineOf(lease: Lease): number | undefined {
    if (lease.deadlineMs !== undefined) return lease.deadlineMs;
    const endMs = this.#epochEnds.endOf(lease.liveEpoch);
    return endMs === undefined ? undefined : endMs + lease.ttlMs;
  }

  #held(id: bigint): HeldLease {
    const held = this.#leases.get(id);
    if (held === undefined) throw new Error(`leases: lease ${id} is not there although it was checked before`);
    return held;
  }
}

/** A string takes up to two bytes per char. */
function labelBytes(lease: Lease): number {
  return lease.label.length * 2;
}
