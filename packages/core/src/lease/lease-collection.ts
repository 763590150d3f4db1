import { BTree, compareBigints } from '../mvcc/btree.ts';
import type { KeyEntry } from '../mvcc/key-entry.ts';
import type { LeaseLinks } from '../mvcc/lease-links.ts';
import { attachKey, countKeys, detachKey, frozenKeys, visitKeys } from './attached-keys.ts';
import type { AttachedKeys } from './attached-keys.ts';
import { EpochEnds } from './epoch-ends.ts';
import type { Lease } from './lease-types.ts';

/**
 * What one lease takes in memory beside its label: record, place, id. etcd counts 64 bytes for a lease, but its quota
 * bounds a file; ours bounds memory, so it must be met before the memory is.
 */
export const leaseOverheadBytes = 192;

/** A lease in its place. It is replaced when the lease changes, so that a clone of the tree keeps the old lease. */
interface Held {
  readonly lease: Lease;
  /** Changed in place: a clone's reader must not look at it. */
  attached: AttachedKeys;
}

/** The leases by id, and which keys each holds. Who may do what to a lease, and when, is decided by the callers. */
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

  /** An estimate of the memory that all leases take, without their keys. */
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

  /** The leases as they are now, in order of ids, however the collection changes later. Costs no copy. */
  freeze(): () => IterableIterator<Lease> {
    const frozen = this.#leases.clone();
    return function* leases(): IterableIterator<Lease> {
      for (const held of frozen.values()) yield held.lease;
    };
  }

  /** The id must be free. */
  add(lease: Lease): void {
    this.#leases.set(lease.id, { lease, attached: undefined });
    this.#labelBytes += labelBytes(lease);
    if (lease.deadlineMs === undefined) this.#epochEnds.retain(lease.liveEpoch);
  }

  /** The lease of that id must exist; it keeps its keys. */
  replace(lease: Lease): void {
    const held = this.#held(lease.id);
    // Retained before the old one is released: an epoch's end must not be dropped in between.
    if (lease.deadlineMs === undefined) this.#epochEnds.retain(lease.liveEpoch);
    if (held.lease.deadlineMs === undefined) this.#epochEnds.release(held.lease.liveEpoch);
    this.#leases.set(lease.id, { lease, attached: held.attached });
  }

  /**
   * Takes a lease away, if it exists and, where `renewIndex` is given, has that one still. Returns whether it did;
   * then it calls `orphan` for each of its keys, in byte order.
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
  }

  detach(id: bigint, entry: KeyEntry): void {
    const held = this.#leases.get(id);
    if (held !== undefined) held.attached = detachKey(held.attached, entry);
  }

  /** How many keys the lease holds; 0 for a lease that does not exist. */
  keyCountOf(id: bigint): number {
    return countKeys(this.#leases.get(id)?.attached);
  }

  /** In byte order, as they are at this moment; none for a lease that does not exist. */
  keysOf(id: bigint): Iterator<string> {
    return frozenKeys(this.#leases.get(id)?.attached);
  }

  /** Cluster time; undefined while the lease is live in the current epoch. */
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

/** A string takes up to two bytes a char. */
function labelBytes(lease: Lease): number {
  return lease.label.length * 2;
}
