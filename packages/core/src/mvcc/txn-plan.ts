import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import { compareHolds } from './compare.ts';
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
import { readRange } from './range-reader.ts';

/**
 * A transaction whose comparisons have been made, nested ones too: all on the state before its first write. What is
 * planned either runs as a whole or, if `check` finds a fault, not at all.
 */
export interface TxnPlan {
  readonly succeeded: boolean;
  readonly ops: readonly PlannedOp[];
}

type PlannedOp = Exclude<RequestOp, { readonly kind: 'txn' }> | { readonly kind: 'txn'; readonly plan: TxnPlan };

export function planTxn(store: KeyValueStore, txn: TxnRequest): TxnPlan {
  const succeeded = txn.compare.every((compare) => compareHolds(store, compare));
  const chosen = succeeded ? txn.success : txn.failure;
  const ops = chosen.map((op): PlannedOp => (op.kind === 'txn' ? { kind: 'txn', plan: planTxn(store, op.txn) } : op));
  return { succeeded, ops };
}

/** Whether no branch of the transaction can write. */
export function isReadOnlyTxn(txn: TxnRequest): boolean {
  return [...txn.success, ...txn.failure].every((op) =>
    op.kind === 'txn' ? isReadOnlyTxn(op.txn) : op.kind !== 'put' && op.kind !== 'deleteRange',
  );
}

/** Whether the plan, as it was chosen, puts a key. */
export function planPuts(plan: TxnPlan): boolean {
  return plan.ops.some((op) => op.kind === 'put' || (op.kind === 'txn' && planPuts(op.plan)));
}

/** The first op, in order, that cannot be carried out. */
export function checkPlan(store: KeyValueStore, leases: LeaseLinks, plan: TxnPlan): CoreError | undefined {
  return checkOps(store, leases, plan, []);
}

/**
 * `deletes` are those that come before, in the order in which the ops are carried out; those of this plan are added.
 */
function checkOps(
  store: KeyValueStore,
  leases: LeaseLinks,
  plan: TxnPlan,
  deletes: DeleteRangeRequest[],
): CoreError | undefined {
  for (const op of plan.ops) {
    const error = checkOp(store, leases, op, deletes);
    if (error !== undefined) return error;
  }
  return undefined;
}

function checkOp(
  store: KeyValueStore,
  leases: LeaseLinks,
  op: PlannedOp,
  deletes: DeleteRangeRequest[],
): CoreError | undefined {
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
      deletes.push(op.deleteRange);
      return undefined;
  }
}

/** A put that keeps its key's value or lease needs the key. */
export function checkKeptKey(store: KeyValueStore, put: PutRequest): CoreError | undefined {
  const keeps = put.ignoreValue || put.ignoreLease;
  return keeps && store.live(put.key) === undefined ? coreError('KeyNotFound') : undefined;
}

/**
 * A delete without end may stand in front of the put of a key that it takes (etcd's check of duplicates lets that
 * pass, and etcd 3.4 then panics when the put keeps the value): there is nothing left to keep.
 */
function checkNotDeleted(deletes: readonly DeleteRangeRequest[], put: PutRequest): CoreError | undefined {
  if (!put.ignoreValue && !put.ignoreLease) return undefined;
  return deletes.some((each) => takes(each, put.key)) ? coreError('KeyNotFound') : undefined;
}

function takes({ key, rangeEnd }: DeleteRangeRequest, other: string): boolean {
  if (rangeEnd === '') return other === key;
  return other >= key && (rangeEnd === '\0' || other < rangeEnd);
}

/** A put to a lease needs the lease. */
export function checkLease(leases: LeaseLinks, put: PutRequest): CoreError | undefined {
  return put.lease !== 0n && !leases.has(put.lease) ? coreError('LeaseNotFound') : undefined;
}

/** Within a transaction, unlike in a range of its own, etcd takes a negative revision for a compacted one. */
function checkRevision(store: KeyValueStore, range: RangeRequest): CoreError | undefined {
  if (range.revision === 0) return undefined;
  if (range.revision > store.currentRevision) return coreError('FutureRevision');
  if (range.revision < store.compactRevision) return coreError('Compacted');
  return undefined;
}

/** Carries out a plan that `checkPlan` found no fault in. The caller commits. */
export function runPlan(store: KeyValueStore, plan: TxnPlan): TxnResult {
  return { succeeded: plan.succeeded, responses: plan.ops.map((op) => runOp(store, op)) };
}

function runOp(store: KeyValueStore, op: PlannedOp): ResponseOp {
  switch (op.kind) {
    case 'put': {
      const put = store.put(op.put);
      return { kind: 'put', revision: store.readRevision, put };
    }
    case 'deleteRange': {
      const deleteRange = store.deleteRange(op.deleteRange);
      return { kind: 'deleteRange', revision: store.readRevision, deleteRange };
    }
    case 'range': {
      const range = readRange(store, op.range);
      if ('kind' in range) throw new Error(`transaction: a range passed its check and then failed with ${range.code}`);
      return { kind: 'range', revision: store.readRevision, range };
    }
    case 'txn':
      return { kind: 'txn', revision: 0, txn: runPlan(store, op.plan) };
    case 'empty':
      throw new Error('transaction: an op without a request passed its check');
  }
}
