import { BTree, compareStrings } from '../mvcc/btree.ts';
import type { IntervalSet } from '../mvcc/interval-set.ts';
import type { KeyEntry } from '../mvcc/key-entry.ts';

/** Up to this many keys are a sorted array; more keys are a tree. */
const maxArrayKeys = 32;

/**
 * The keys of one lease, always sorted, so that the end of a lease with many keys needs no sort. Most leases have no
 * key or one key, so the form grows with the number: undefined, the entry itself, an array, a tree. The set holds the
 * entries themselves, so that deleting them needs no lookup.
 */
export type AttachedKeys = undefined | KeyEntry | KeyEntry[] | BTree<string, KeyEntry>;

export function attachKey(keys: AttachedKeys, entry: KeyEntry): AttachedKeys {
  if (keys === undefined) return entry;
  if (keys instanceof BTree) {
    keys.set(entry.head.key, entry);
    return keys;
  }
  const array = Array.isArray(keys) ? keys : [keys];
  const at = positionOf(array, entry.head.key);
  if (array[at]?.head.key !== entry.head.key) array.splice(at, 0, entry);
  if (array.length <= maxArrayKeys) return array;
  const pairs = array.map((one): [string, KeyEntry] => [one.head.key, one]);
  return new BTree<string, KeyEntry>(pairs, compareStrings);
}

export function detachKey(keys: AttachedKeys, entry: KeyEntry): AttachedKeys {
  if (keys instanceof BTree) {
    keys.delete(entry.head.key);
    return keys.size === 0 ? undefined : keys;
  }
  if (!Array.isArray(keys)) return keys === entry ? undefined : keys;
  const at = positionOf(keys, entry.head.key);
  if (keys[at] === entry) keys.splice(at, 1);
  return keys.length === 0 ? undefined : keys;
}

export function countKeys(keys: AttachedKeys): number {
  if (keys === undefined) return 0;
  if (keys instanceof BTree) return keys.size;
  return Array.isArray(keys) ? keys.length : 1;
}

/** In byte order of the keys. */
export function visitKeys(keys: AttachedKeys, visit: (entry: KeyEntry) => void): void {
  if (keys === undefined) return;
  if (keys instanceof BTree) keys.forEachPair((_key, entry) => visit(entry));
  else if (Array.isArray(keys)) keys.forEach(visit);
  else visit(keys);
}

/**
 * The first key that is in none of the intervals. Costs a lookup for each interval that contains keys, however many
 * keys it contains.
 */
export function firstKeyOutside(keys: AttachedKeys, intervals: IntervalSet): string | undefined {
  let key = firstKeyFrom(keys, '');
  while (key !== undefined) {
    const end = intervals.endAround(key);
    if (end === undefined) return key;
    key = firstKeyFrom(keys, end);
  }
  return undefined;
}

function firstKeyFrom(keys: AttachedKeys, from: string): string | undefined {
  if (keys === undefined) return undefined;
  if (keys instanceof BTree) return keys.getPairOrNextHigher(from)?.[0];
  if (Array.isArray(keys)) return keys[positionOf(keys, from)]?.head.key;
  return keys.head.key >= from ? keys.head.key : undefined;
}

/** The keys at the moment of the call, also when the lease changes during the iteration. */
export function frozenKeys(keys: AttachedKeys): Iterator<string> {
  if (keys instanceof BTree) return keys.clone().keys();
  const names: string[] = [];
  visitKeys(keys, (entry) => names.push(entry.head.key));
  return names.values();
}

function positionOf(array: readonly KeyEntry[], key: string): number {
  let low = 0;
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (array[middle]!.head.key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
