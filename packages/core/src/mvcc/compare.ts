import { compareBigints, compareStrings } from './btree.ts';
import { isTombstone } from './key-entry.ts';
import type { KeyValueStore } from './key-value-store.ts';
import { CompareResult, CompareTarget } from './kv-types.ts';
import type { Compare, KeyValue } from './kv-types.ts';
import type { TxnCost } from './txn-limits.ts';

const absent: KeyValue = { key: '', value: '', createRevision: 0, modRevision: 0, version: 0, lease: 0n };

/**
 * Whether every key of the compare's range satisfies it. A missing key or an empty range compares as one key whose
 * numbers are 0, except that a comparison of its value never holds. The result is meaningless once `cost` is exceeded.
 */
export function compareHolds(store: KeyValueStore, compare: Compare, cost: TxnCost): boolean {
  let met = true;
  let found = false;
  store.index.visitRange(compare.key, compare.rangeEnd, (entry) => {
    if (!cost.addRow()) return false;
    if (isTombstone(entry.head)) return true;
    found = true;
    if (
      compare.target === CompareTarget.value &&
      !cost.addComparedBytes(Math.min(entry.head.value.length, compare.value.length))
    ) {
      return false;
    }
    met = satisfies(compare, entry.head);
    return met;
  });
  if (found) return met;
  return compare.target !== CompareTarget.value && satisfies(compare, absent);
}

function satisfies(compare: Compare, kv: KeyValue): boolean {
  const difference = differenceOf(compare, kv);
  switch (compare.result) {
    case CompareResult.equal:
      return difference === 0;
    case CompareResult.greater:
      return difference > 0;
    case CompareResult.less:
      return difference < 0;
    case CompareResult.notEqual:
      return difference !== 0;
    default:
      // An unknown result: etcd treats the comparison as true.
      return true;
  }
}

function differenceOf(compare: Compare, kv: KeyValue): number {
  switch (compare.target) {
    case CompareTarget.version:
      return kv.version - compare.number;
    case CompareTarget.create:
      return kv.createRevision - compare.number;
    case CompareTarget.mod:
      return kv.modRevision - compare.number;
    case CompareTarget.value:
      return compareStrings(kv.value, compare.value);
    case CompareTarget.lease:
      return compareBigints(kv.lease, compare.lease);
    default:
      return 0;
  }
}
