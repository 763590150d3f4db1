import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import { isTombstone } from './key-entry.ts';
import type { KeyValueStore } from './key-value-store.ts';
import type { DeleteRangeRequest, RangeRequest } from './kv-types.ts';
import { answeredBytes, mostBytesAnswered } from './range-scan.ts';
import type { TxnCost } from './txn-limits.ts';
import type { TxnPlan } from './txn-plan.ts';

/**
 * On the state before the first write: what the ops before one change of what it looks at is at most as many keys as
 * they are.
 */
export function checkCost(store: KeyValueStore, plan: TxnPlan, cost: TxnCost): CoreError | undefined {
  if (!cost.isLimited) return undefined;
  addCost(store, plan, cost);
  return cost.isExceeded ? coreError('RequestTooLarge') : undefined;
}

function addCost(store: KeyValueStore, plan: TxnPlan, cost: TxnCost): void {
  for (const op of plan.ops) {
    if (cost.isExceeded) return;
    if (op.kind === 'txn') addCost(store, op.plan, cost);
    else if (op.kind === 'range') addRangeCost(store, op.range, cost);
    else if (op.kind === 'deleteRange') addDeleteCost(store, op.deleteRange, cost);
    else if (op.kind === 'put' && op.put.prevKv) cost.addReplyBytes(store.live(op.put.key)?.value.length ?? 0);
  }
}

function addRangeCost(store: KeyValueStore, range: RangeRequest, cost: TxnCost): void {
  const revision = range.revision > 0 ? range.revision : store.currentRevision;
  let total = 0;
  let largest = 0;
  store.index.visitRange(range.key, range.rangeEnd, (entry) => {
    const kv = entry.liveAt(revision);
    const bytes = kv === undefined ? 0 : answeredBytes(range, kv);
    total += bytes;
    largest = Math.max(largest, bytes);
    return cost.addRow();
  });
  cost.addReplyBytes(mostBytesAnswered(range, total, largest));
}

function addDeleteCost(store: KeyValueStore, { key, rangeEnd, prevKv }: DeleteRangeRequest, cost: TxnCost): void {
  let bytes = 0;
  store.index.visitRange(key, rangeEnd, ({ head }) => {
    if (prevKv && !isTombstone(head)) bytes += head.key.length + head.value.length;
    return cost.addRow();
  });
  cost.addReplyBytes(bytes);
}
