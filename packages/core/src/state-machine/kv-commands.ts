import { coreError } from '../core-error.ts';
import type { DeleteRangeRequest, PutRequest, TxnRequest } from '../mvcc/kv-types.ts';
import { noTxnLimits } from '../mvcc/txn-limits.ts';
import { checkKeptKey, checkLease, checkPlan, planPuts, planTxn, runPlan } from '../mvcc/txn-plan.ts';
import { isAlarmed } from './cluster-commands.ts';
import type { CommandResponse } from './command.ts';
import type { State } from './state.ts';

export function applyPutCommand(state: State, put: PutRequest): CommandResponse {
  if (isAlarmed(state, 'nospace')) return coreError('NoSpace');
  // For a plain put etcd checks the lease first, within a transaction the key.
  const error = checkLease(state.leases, put) ?? checkKeptKey(state.store, put);
  if (error !== undefined) return error;
  const result = state.store.put(put);
  return { kind: 'put', revision: state.store.commit(), put: result };
}

export function applyDeleteRangeCommand(
  state: State,
  request: DeleteRangeRequest,
  isAwaited: boolean,
): CommandResponse {
  const deleteRange = state.store.deleteRange(request, isAwaited);
  return { kind: 'deleteRange', revision: state.store.commit(), deleteRange };
}

export function applyTxnCommand(state: State, request: TxnRequest, isAwaited: boolean): CommandResponse {
  const { cluster, store, leases } = state;
  const plan = planTxn(store, request, cluster.txnLimits ?? noTxnLimits);
  if ('kind' in plan) return plan;
  if (isAlarmed(state, 'nospace') && planPuts(plan)) return coreError('NoSpace');
  const error = checkPlan(store, leases, plan);
  if (error !== undefined) return error;
  const txn = runPlan(store, plan, isAwaited);
  return { kind: 'txn', revision: store.commit(), txn };
}

export function applyCompactCommand(state: State, revision: number): CommandResponse {
  return state.store.compact(revision) ?? { kind: 'compact', revision: state.store.currentRevision };
}
