import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import { SortOrder, SortTarget } from './kv-types.ts';
import { findOverlap } from './txn-overlap.ts';
import type { DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest } from './kv-types.ts';

/**
 * Faults of a request that do not depend on the state. The API layer checks them before it proposes anything; the state
 * machine does not check again, and stays consistent when it applies a request with such a fault.
 */
export function checkRange(range: RangeRequest): CoreError | undefined {
  if (range.key === '') return coreError('EmptyKey');
  if (!isWithin(range.sortOrder, SortOrder.descend) || !isWithin(range.sortTarget, SortTarget.value))
    return coreError('InvalidSortOption');
  return undefined;
}

function isWithin(value: number, highest: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= highest;
}

export function checkPut(put: PutRequest): CoreError | undefined {
  if (put.key === '') return coreError('EmptyKey');
  if (put.ignoreValue && put.value !== '') return coreError('ValueProvided');
  if (put.ignoreLease && put.lease !== 0n) return coreError('LeaseProvided');
  return undefined;
}

export function checkDeleteRange(deleteRange: DeleteRangeRequest): CoreError | undefined {
  return deleteRange.key === '' ? coreError('EmptyKey') : undefined;
}

/** A negative revision is always compacted: an empty store counts as compacted up to -1. */
export function checkCompact(revision: number): CoreError | undefined {
  return revision < 0 ? coreError('Compacted') : undefined;
}

/** The factor by which the total number of comparisons and ops, nested ones included, may exceed `maxTxnOps`. */
const maxTotalFactor = 16;

/** The maximum total number of comparisons and ops of a transaction, nested ones included. */
export function maxTotalTxnOps(maxTxnOps: number): number {
  return maxTxnOps * maxTotalFactor;
}

/**
 * `maxTxnOps` bounds the longest of the three lists; a nested transaction has the number that its parent left. That
 * alone would let a small request contain very many ops, so Tenure also bounds their total, which etcd does not.
 */
export function checkTxn(txn: TxnRequest, maxTxnOps: number): CoreError | undefined {
  const budget = { left: maxTotalTxnOps(maxTxnOps) };
  const error = checkTxnOps(txn, maxTxnOps, budget);
  if (error !== undefined) return error;
  return findOverlap(txn.success) || findOverlap(txn.failure) ? coreError('DuplicateKey') : undefined;
}

interface Budget {
  left: number;
}

function checkTxnOps(txn: TxnRequest, maxTxnOps: number, budget: Budget): CoreError | undefined {
  const opCount = Math.max(txn.compare.length, txn.success.length, txn.failure.length);
  budget.left -= txn.compare.length + txn.success.length + txn.failure.length;
  if (opCount > maxTxnOps || budget.left < 0) return coreError('TooManyOps');
  if (txn.compare.some((compare) => compare.key === '')) return coreError('EmptyKey');
  for (const branch of [txn.success, txn.failure]) {
    for (const op of branch) {
      const error = checkOp(op, maxTxnOps - opCount, budget);
      if (error !== undefined) return error;
    }
  }
  return undefined;
}

function checkOp(op: RequestOp, maxTxnOps: number, budget: Budget): CoreError | undefined {
  switch (op.kind) {
    case 'range':
      return checkRange(op.range);
    case 'put':
      return checkPut(op.put);
    case 'deleteRange':
      return checkDeleteRange(op.deleteRange);
    case 'txn':
      return checkTxnOps(op.txn, maxTxnOps, budget);
    case 'empty':
      return coreError('KeyNotFound');
  }
}
