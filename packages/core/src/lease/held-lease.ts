import type { IntervalSet } from '../mvcc/interval-set.ts';
import type { KeyEntry } from '../mvcc/key-entry.ts';
import { attachKey, countKeys, detachKey, firstKeyOutside, frozenKeys, visitKeys } from './attached-keys.ts';
import type { AttachedKeys } from './attached-keys.ts';
import { KeyCoverage } from './key-coverage.ts';
import type { Lease } from './lease-types.ts';

/** The keys of a lease with fewer are looked at each time: that takes less than what would be remembered. */
const fewKeys = 32;

/**
 * A lease with its keys, in one object: there may be millions. A changed lease is a new object, so that a clone of the
 * tree keeps the old lease. Its keys change in place, so a reader of a clone must not use them; they are private, so
 * that a copy of the lease does not have them.
 */
export class HeldLease implements Lease {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly label: string;
  readonly renewIndex: number;
  readonly liveEpoch: number;
  readonly deadlineMs: number | undefined;
  /** With what is remembered of them, once that was asked for while there are many. */
  #keys: AttachedKeys | CoveredKeys;

  /** `before`: the lease that this one replaces, whose keys stay attached. */
  constructor({ id, ttlMs, label, renewIndex, liveEpoch, deadlineMs }: Lease, before?: HeldLease) {
    this.id = id;
    this.ttlMs = ttlMs;
    this.label = label;
    this.renewIndex = renewIndex;
    this.liveEpoch = liveEpoch;
    this.deadlineMs = deadlineMs;
    this.#keys = before === undefined ? undefined : before.#keys;
  }

  get keyCount(): number {
    return countKeys(this.#attached);
  }

  attach(entry: KeyEntry): void {
    if (this.#keys instanceof CoveredKeys) this.#keys.attach(entry);
    else this.#keys = attachKey(this.#keys, entry);
  }

  detach(entry: KeyEntry): void {
    if (this.#keys instanceof CoveredKeys) this.#keys.detach(entry);
    else this.#keys = detachKey(this.#keys, entry);
  }

  /** In byte order of the keys. */
  visitKeys(visit: (entry: KeyEntry) => void): void {
    visitKeys(this.#attached, visit);
  }

  /** In byte order, at the moment of the call. */
  frozenKeys(): Iterator<string> {
    return frozenKeys(this.#attached);
  }

  /** Some key of the lease that is in none of the intervals; see KeyCoverage. */
  keyOutside(intervals: IntervalSet): string | undefined {
    const keys = this.#attached;
    if (countKeys(keys) < fewKeys) return firstKeyOutside(keys, intervals);
    if (!(this.#keys instanceof CoveredKeys)) this.#keys = new CoveredKeys(keys);
    return this.#keys.coverage.keyOutside(keys, intervals);
  }

  get #attached(): AttachedKeys {
    return this.#keys instanceof CoveredKeys ? this.#keys.attached : this.#keys;
  }
}

/** Keys, and what is remembered of them. */
class CoveredKeys {
  attached: AttachedKeys;
  readonly coverage = new KeyCoverage();

  constructor(attached: AttachedKeys) {
    this.attached = attached;
  }

  attach(entry: KeyEntry): void {
    this.attached = attachKey(this.attached, entry);
    this.coverage.attached(entry.head.key);
  }

  detach(entry: KeyEntry): void {
    this.attached = detachKey(this.attached, entry);
    this.coverage.detached(entry.head.key);
  }
}
