import { coreError } from '../core-error.ts';
import type { DeleteRangeRequest, PutRequest, TxnRequest } from '../mvcc/kv-types.ts';
import { checkKeptKey, checkLease, checkPlan, planPuts, planTxn, runPlan } from '../mvcc/txn-plan.ts';
import { isAlarmed } from './cluster-commands.ts';
import type { CommandResponse } from './command.ts';
import type { State } from './state.ts';

export function applyPutCommand(state: State, put: PutRequest): CommandResponse {
  if (isAlarmed(state, 'nospace')) return coreError('NoSpace');
  // For a put of its own etcd looks for the lease first, within a transaction for the key.
  const error = checkLease(state.leases, put) ?? checkKeptKey(state.store, put);
  if (error !== undefined) return error;
  const result = state.store.put(put);
  return { kind: 'put', revision: state.store.commit(), put: result };
}

export function applyDeleteRangeCommand(state: State, request: DeleteRangeRequest): CommandResponse {
  const deleteRange = state.store.deleteRange(request);
  return { kind: 'deleteRange', revision: state.store.commit(), deleteRange };
}

export function applyTxnCommand(state: State, request: TxnRequest): CommandResponse {
  const plan = planTxn(state.store, request);
  if (isAlarmed(state, 'nospace') && planPuts(plan)) return coreError('NoSpace');
  const error = checkPlan(state.store, state.leases, plan);
  if (error !== undefined) return error;
  const txn = runPlan(state.store, plan);
  return { kind: 'txn', revision: state.store.commit(), txn };
}

export function applyCompactCommand(state: State, revision: number): CommandResponse {
  return state.store.compact(revision) ?? { kind: 'compact', revision: state.store.currentRevision };
}
