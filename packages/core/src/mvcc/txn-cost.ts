import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import { isTombstone } from './key-entry.ts';
import type { KeyValueStore } from './key-value-store.ts';
import type { DeleteRangeRequest, PutRequest, RangeRequest } from './kv-types.ts';
import { mostBytesAnswered, sortsByValue } from './range-scan.ts';
import type { TxnCost } from './txn-limits.ts';
import type { PlannedTxn } from './planned-txn.ts';

/** On the state before the first write, plus the puts of the preceding ops. */
export function checkCost(store: KeyValueStore, plan: PlannedTxn, cost: TxnCost): CoreError | undefined {
  if (!cost.isLimited) return undefined;
  addCost(store, plan, cost);
  return cost.isExceeded ? coreError('RequestTooLarge') : undefined;
}

function addCost(store: KeyValueStore, plan: PlannedTxn, cost: TxnCost): void {
  for (const op of plan.ops) {
    if (cost.isExceeded) return;
    if (op.kind === 'txn') addCost(store, op.plan, cost);
    else if (op.kind === 'range') addRangeCost(store, op.range, cost);
    else if (op.kind === 'deleteRange') addDeleteCost(store, op.deleteRange, cost);
    else if (op.kind === 'put') addPutCost(store, op.put, cost);
  }
}

/** The cost of the rows of one range. */
class Rows {
  count = 0;
  keyBytes = 0;
  valueBytes = 0;
  largestBytes = 0;

  add(keyBytes: number, valueBytes: number, answeredBytes: number): void {
    this.count += 1;
    this.keyBytes += keyBytes;
    this.valueBytes += valueBytes;
    this.largestBytes = Math.max(this.largestBytes, answeredBytes);
  }
}

function addRangeCost(store: KeyValueStore, range: RangeRequest, cost: TxnCost): void {
  const revision = range.revision > 0 ? range.revision : store.currentRevision;
  const answered = (keyBytes: number, valueBytes: number): number =>
    range.keysOnly ? keyBytes : keyBytes + valueBytes;
  const rows = new Rows();
  store.index.visitRange(range.key, range.rangeEnd, (entry) => {
    const kv = entry.liveAt(revision);
    if (kv !== undefined) rows.add(kv.key.length, kv.value.length, answered(kv.key.length, kv.value.length));
    return cost.addRow();
  });
  if (range.revision <= 0) {
    visitPuts(cost, range, (key, valueBytes) => rows.add(key.length, valueBytes, answered(key.length, valueBytes)));
  }
  cost.addReplyBytes(mostBytesAnswered(range, answered(rows.keyBytes, rows.valueBytes), rows.largestBytes));
  // The number of comparisons per row is about the base-2 logarithm of the number of rows.
  if (sortsByValue(range)) cost.addComparedBytes(rows.valueBytes * Math.ceil(Math.log2(rows.count + 1)));
}

function addDeleteCost(store: KeyValueStore, request: DeleteRangeRequest, cost: TxnCost): void {
  let bytes = 0;
  store.index.visitRange(request.key, request.rangeEnd, ({ head }) => {
    if (!isTombstone(head)) bytes += head.key.length + head.value.length;
    return cost.addRow();
  });
  visitPuts(cost, request, (key, valueBytes) => (bytes += key.length + valueBytes));
  if (request.prevKv) cost.addReplyBytes(bytes);
}

function addPutCost(store: KeyValueStore, put: PutRequest, cost: TxnCost): void {
  const previousBytes = put.prevKv || put.ignoreValue ? (store.live(put.key)?.value.length ?? 0) : 0;
  if (put.prevKv) cost.addReplyBytes(put.key.length + previousBytes);
  cost.addPut(put.key, put.ignoreValue ? previousBytes : put.value.length);
}

/** Visits the puts of preceding ops that are in its range. Each put is scanned, so each is a row. */
function visitPuts(
  cost: TxnCost,
  { key, rangeEnd }: Pick<RangeRequest, 'key' | 'rangeEnd'>,
  visit: (key: string, valueBytes: number) => void,
): void {
  if (rangeEnd === '') {
    const valueBytes = cost.puts.get(key);
    if (valueBytes !== undefined) visit(key, valueBytes);
    return;
  }
  for (const [put, valueBytes] of cost.puts) {
    if (!cost.addRow()) return;
    if (put >= key && (rangeEnd === '\0' || put < rangeEnd)) visit(put, valueBytes);
  }
}
