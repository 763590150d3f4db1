import { compareBigints, compareStrings } from './btree.ts';
import { isTombstone } from './key-entry.ts';
import type { KeyValueStore } from './key-value-store.ts';
import type { Compare, KeyValue } from './kv-types.ts';
import type { TxnCost } from './txn-limits.ts';

/** Numbers of the wire's CompareTarget. */
const targetValue = 3;

const absent: KeyValue = { key: '', value: '', createRevision: 0, modRevision: 0, version: 0, lease: 0n };

/**
 * Whether every key of the compare's range satisfies it. A key or range that does not exist compares as one key whose
 * numbers are 0, except that no comparison of its value compareHolds. What it answers is of no use once `cost` is
 * exceeded.
 */
export function compareHolds(store: KeyValueStore, compare: Compare, cost: TxnCost): boolean {
  let met = true;
  let found = false;
  store.index.visitRange(compare.key, compare.rangeEnd, (entry) => {
    if (!cost.addRow()) return false;
    if (isTombstone(entry.head)) return true;
    found = true;
    if (
      compare.target === targetValue &&
      !cost.addComparedBytes(Math.min(entry.head.value.length, compare.value.length))
    ) {
      return false;
    }
    met = satisfies(compare, entry.head);
    return met;
  });
  if (found) return met;
  return compare.target !== targetValue && satisfies(compare, absent);
}

function satisfies(compare: Compare, kv: KeyValue): boolean {
  const difference = differenceOf(compare, kv);
  switch (compare.result) {
    case 0:
      return difference === 0;
    case 1:
      return difference > 0;
    case 2:
      return difference < 0;
    case 3:
      return difference !== 0;
    default:
      // A result that etcd does not know either: it takes the comparison for met.
      return true;
  }
}

function differenceOf(compare: Compare, kv: KeyValue): number {
  switch (compare.target) {
    case 0:
      return kv.version - compare.number;
    case 1:
      return kv.createRevision - compare.number;
    case 2:
      return kv.modRevision - compare.number;
    case targetValue:
      return compareStrings(kv.value, compare.value);
    case 4:
      return compareBigints(kv.lease, compare.lease);
    default:
      return 0;
  }
}
