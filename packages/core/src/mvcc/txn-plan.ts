import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import { compareHolds } from './compare.ts';
import { endOfRange, IntervalSet } from './interval-set.ts';
import type { KeyValueStore } from './key-value-store.ts';
import type {
  DeleteRangeRequest,
  PutRequest,
  RangeRequest,
  RequestOp,
  ResponseOp,
  TxnRequest,
  TxnResult,
} from './kv-types.ts';
import type { LeaseLinks } from './lease-links.ts';
import type { PlannedOp, PlannedTxn } from './planned-txn.ts';
import { readRange } from './range-scan.ts';
import { checkCost } from './txn-cost.ts';
import { TxnCost } from './txn-limits.ts';
import type { TxnLimits } from './txn-limits.ts';

/** Comparing this many bytes takes less than a millisecond. */
const fewComparedBytes = 1024 * 1024;

/** The ops of the transaction to run now; RequestTooLarge when they exceed the limits. */
export function planTxn(store: KeyValueStore, txn: TxnRequest, limits: TxnLimits): PlannedTxn | CoreError {
  const cost = new TxnCost(limits);
  const plan = choose(store, txn, cost);
  return checkCost(store, plan, cost) ?? plan;
}

/** The number of keys that a transaction would scan now; `atMost` if there are more, or if it compares many bytes. */
export function countTxnRows(store: KeyValueStore, txn: TxnRequest, atMost: number): number {
  const cost = new TxnCost({ maxRows: atMost, maxReplyBytes: Infinity, maxComparedBytes: fewComparedBytes });
  checkCost(store, choose(store, txn, cost), cost);
  return cost.isExceeded ? atMost : cost.rows;
}

/** All operations of the transaction in both branches, nested ones included. */
export function countOperations({ success, failure }: TxnRequest): number {
  let count = 0;
  for (const op of [...success, ...failure]) count += op.kind === 'txn' ? 1 + countOperations(op.txn) : 1;
  return count;
}

/** Whether the transaction has a range, a delete or a comparison of more than one key. */
export function hasInterval({ compare, success, failure }: TxnRequest): boolean {
  return compare.some(({ rangeEnd }) => rangeEnd !== '') || [success, failure].some((ops) => ops.some(isInterval));
}

function isInterval(op: RequestOp): boolean {
  switch (op.kind) {
    case 'range':
      return op.range.rangeEnd !== '';
    case 'deleteRange':
      return op.deleteRange.rangeEnd !== '';
    case 'txn':
      return hasInterval(op.txn);
    case 'put':
    case 'empty':
      return false;
  }
}

function choose(store: KeyValueStore, txn: TxnRequest, cost: TxnCost): PlannedTxn {
  const succeeded = txn.compare.every((compare) => compareHolds(store, compare, cost));
  const chosen = succeeded ? txn.success : txn.failure;
  const ops = chosen.map((op): PlannedOp => {
    return op.kind === 'txn' ? { kind: 'txn', plan: choose(store, op.txn, cost) } : op;
  });
  return { succeeded, ops };
}

/** Whether no branch of the transaction can write. */
export function isReadOnlyTxn(txn: TxnRequest): boolean {
  return [...txn.success, ...txn.failure].every((op) =>
    op.kind === 'txn' ? isReadOnlyTxn(op.txn) : op.kind !== 'put' && op.kind !== 'deleteRange',
  );
}

/** Whether the chosen branch puts a key. */
export function planPuts(plan: PlannedTxn): boolean {
  return plan.ops.some((op) => op.kind === 'put' || (op.kind === 'txn' && planPuts(op.plan)));
}

/** The error of the first op, in order, that cannot run. */
export function checkPlan(store: KeyValueStore, leases: LeaseLinks, plan: PlannedTxn): CoreError | undefined {
  return checkOps(store, leases, plan, new IntervalSet());
}

/** `deletes` are the deletes of preceding ops, in execution order; the deletes of this plan are appended. */
function checkOps(
  store: KeyValueStore,
  leases: LeaseLinks,
  plan: PlannedTxn,
  deletes: IntervalSet,
): CoreError | undefined {
  for (const op of plan.ops) {
    const error = checkOp(store, leases, op, deletes);
    if (error !== undefined) return error;
  }
  return undefined;
}

function checkOp(store: KeyValueStore, leases: LeaseLinks, op: PlannedOp, deletes: IntervalSet): CoreError | undefined {
  switch (op.kind) {
    case 'put':
      return checkKeptKey(store, op.put) ?? checkNotDeleted(deletes, op.put) ?? checkLease(leases, op.put);
    case 'range':
      return checkRevision(store, op.range);
    case 'txn':
      return checkOps(store, leases, op.plan, deletes);
    case 'empty':
      return coreError('KeyNotFound');
    case 'deleteRange':
      addDelete(deletes, op.deleteRange);
      return undefined;
  }
}

/** A put that keeps the value or the lease needs the existing key. */
export function checkKeptKey(store: KeyValueStore, put: PutRequest): CoreError | undefined {
  const keeps = put.ignoreValue || put.ignoreLease;
  return keeps && store.live(put.key) === undefined ? coreError('KeyNotFound') : undefined;
}

/**
 * A delete without an end may come before the put of a key in its range (etcd's check of duplicates accepts that, and
 * etcd 3.4 then panics when the put keeps the value): there is no value left to keep.
 */
function checkNotDeleted(deletes: IntervalSet, put: PutRequest): CoreError | undefined {
  const keeps = put.ignoreValue || put.ignoreLease;
  return keeps && deletes.has(put.key) ? coreError('KeyNotFound') : undefined;
}

function addDelete(deletes: IntervalSet, { key, rangeEnd }: DeleteRangeRequest): void {
  deletes.add(key, endOfRange(key, rangeEnd));
}

/** A put with a lease needs the lease to exist. */
export function checkLease(leases: LeaseLinks, put: PutRequest): CoreError | undefined {
  return put.lease !== 0n && !leases.has(put.lease) ? coreError('LeaseNotFound') : undefined;
}

/** Within a transaction, unlike in a plain range, etcd treats a negative revision as compacted. */
function checkRevision(store: KeyValueStore, range: RangeRequest): CoreError | undefined {
  if (range.revision === 0) return undefined;
  if (range.revision > store.currentRevision) return coreError('FutureRevision');
  if (range.revision < store.compactRevision) return coreError('Compacted');
  return undefined;
}

/**
 * Executes a plan. The caller commits. When no client waits for the response, only the state changes are made: the
 * result has no responses.
 */
export function runPlan(store: KeyValueStore, plan: PlannedTxn, isAwaited: boolean): TxnResult {
  const responses: ResponseOp[] = [];
  for (const op of plan.ops) {
    const response = runOp(store, op, isAwaited);
    if (response !== undefined && isAwaited) responses.push(response);
  }
  return { succeeded: plan.succeeded, responses };
}

function runOp(store: KeyValueStore, op: PlannedOp, isAwaited: boolean): ResponseOp | undefined {
  switch (op.kind) {
    case 'put': {
      const put = store.put(op.put);
      return { kind: 'put', revision: store.readRevision, put };
    }
    case 'deleteRange': {
      const deleteRange = store.deleteRange(op.deleteRange, isAwaited);
      return { kind: 'deleteRange', revision: store.readRevision, deleteRange };
    }
    case 'range': {
      if (!isAwaited) return undefined;
      const range = readRange(store, op.range);
      if ('kind' in range) throw new Error(`transaction: a range passed its check and then failed with ${range.code}`);
      return { kind: 'range', revision: store.readRevision, range };
    }
    case 'txn':
      return { kind: 'txn', revision: 0, txn: runPlan(store, op.plan, isAwaited) };
    case 'empty':
      throw new Error('transaction: an op without a request passed its check');
  }
}
