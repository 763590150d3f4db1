import type { Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest } from '../mvcc/kv-types.ts';
import type { Command } from '../state-machine/command.ts';
import type { Applied } from '../state-machine/entry.ts';
import type { StateMachine } from '../state-machine/state-machine.ts';

/** Requests with the wire's default in every field. */
export function rangeRequest(key: string, rangeEnd = '', options: Partial<RangeRequest> = {}): RangeRequest {
  return {
    key,
    rangeEnd,
    limit: 0,
    revision: 0,
    sortOrder: 0,
    sortTarget: 0,
    serializable: false,
    keysOnly: false,
    countOnly: false,
    minModRevision: 0,
    maxModRevision: 0,
    minCreateRevision: 0,
    maxCreateRevision: 0,
    ...options,
  };
}

export function putRequest(key: string, value: string, options: Partial<PutRequest> = {}): PutRequest {
  return { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false, ...options };
}

export function put(key: string, value: string, options: Partial<PutRequest> = {}): Command & RequestOp {
  return { kind: 'put', put: putRequest(key, value, options) };
}

export function deleteRange(
  key: string,
  rangeEnd = '',
  options: Partial<DeleteRangeRequest> = {},
): Command & RequestOp {
  return { kind: 'deleteRange', deleteRange: { key, rangeEnd, prevKv: false, ...options } };
}

export function range(key: string, rangeEnd = '', options: Partial<RangeRequest> = {}): RequestOp {
  return { kind: 'range', range: rangeRequest(key, rangeEnd, options) };
}

export function compare(key: string, options: Partial<Compare> = {}): Compare {
  return { result: 0, target: 0, key, rangeEnd: '', number: 0, value: '', lease: 0n, ...options };
}

export function txn(request: Partial<TxnRequest>): Command & RequestOp {
  return { kind: 'txn', txn: { compare: [], success: [], failure: [], ...request } };
}

export function grant(id: bigint, ttlMs = 10_000, label = ''): Command {
  return { kind: 'leaseGrant', id, ttlMs, label };
}

export function keysOf(machine: StateMachine, leaseId: bigint): string[] {
  const keys = machine.keysOfLease(leaseId);
  const found: string[] = [];
  for (let next = keys.next(); next.done !== true; next = keys.next()) found.push(next.value);
  return found;
}

/** Applies one entry after the last one, in the current epoch, ten milliseconds later. */
export function applyNext(machine: StateMachine, ...commands: Command[]): Applied {
  const timeMs = machine.clusterTimeMs + 10;
  return machine.apply({ index: machine.appliedIndex + 1, epoch: machine.epoch, timeMs, commands });
}
