import { BTree, compareStrings } from '../mvcc/btree.ts';
import type { IntervalSet } from '../mvcc/interval-set.ts';
import type { KeyEntry } from '../mvcc/key-entry.ts';

/** Up to this many keys are a sorted array; more keys are a tree. */
const maxArrayKeys = 32;
/** A lookup in the tree takes about as long as so many steps to the next key. */
const stepsBeforeSkip = 32;

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
 * The first key that is in none of the intervals. The keys and the intervals are walked together, and the rest of the
 * keys in an interval with many of them is skipped.
 */
export function firstKeyOutside(keys: AttachedKeys, intervals: IntervalSet): string | undefined {
  const walk = intervals.walk();
  if (!(keys instanceof BTree)) {
    const array = keys === undefined ? [] : Array.isArray(keys) ? keys : [keys];
    return array.find(({ head }) => walk.endAround(head.key) === undefined)?.head.key;
  }
  let names = keys.keys();
  let end = '';
  let inside = 0;
  for (let next = names.next(); next.done !== true; next = names.next()) {
    inside += 1;
    if (next.value >= end) {
      const found = walk.endAround(next.value);
      if (found === undefined) return next.value;
      [end, inside] = [found, 0];
    } else if (inside === stepsBeforeSkip) {
      names = keys.keys(end);
    }
  }
  return undefined;
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
