import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import { SortOrder, SortTarget } from './kv-types.ts';
import { findOverlap } from './txn-overlap.ts';
import type { DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest } from './kv-types.ts';

/**
 * What is wrong with a request whatever the state is. The edge asks before it proposes anything; the state machine
 * does not ask again, and stays whole if it is handed a request that would not pass.
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

/** A compaction below revision 0 comes too late from the start: an empty store counts as compacted up to -1. */
export function checkCompact(revision: number): CoreError | undefined {
  return revision < 0 ? coreError('Compacted') : undefined;
}

/** How much more than `maxTxnOps` all the comparisons and ops of a transaction may be, with those of nested ones. */
const maxTotalFactor = 16;

/** All the comparisons and ops that a transaction may have, with those of nested ones. */
export function maxTotalTxnOps(maxTxnOps: number): number {
  return maxTxnOps * maxTotalFactor;
}

/**
 * `maxTxnOps` bounds the longest of the three lists; a nested transaction has what its parent left of it. That alone
 * would let a small request hold very many ops, so we also bound their total, which etcd does not.
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
