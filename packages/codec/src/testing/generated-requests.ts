import { create } from '@bufbuild/protobuf';
import { bytesFromLatin1, latin1FromBytes } from '../latin1.ts';
import type { Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest } from '@tenure/core';
import { etcdserverpb, type etcdserverpb as rpc } from '@tenure/protocol';
import type { WatchRequest } from '../watch-request.ts';

const {
  CompareSchema,
  DeleteRangeRequestSchema,
  PutRequestSchema,
  RangeRequestSchema,
  RequestOpSchema,
  TxnRequestSchema,
  WatchCreateRequest_FilterType,
} = etcdserverpb;

/*
 * The requests in both forms, written a second time so that the codecs are compared with independent code: `...Message`
 * converts to the generated message, `...Shape` converts from it.
 */

/** The conversion of an int64 to a number in the hand-written codecs. */
export function clamp(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) return Number.MAX_SAFE_INTEGER;
  return value < BigInt(Number.MIN_SAFE_INTEGER) ? Number.MIN_SAFE_INTEGER : Number(value);
}

export function putMessage(put: PutRequest): rpc.PutRequest {
  return create(PutRequestSchema, { ...put, key: bytesFromLatin1(put.key), value: bytesFromLatin1(put.value) });
}

export function putShape(put: rpc.PutRequest): PutRequest {
  const { lease, prevKv, ignoreValue, ignoreLease } = put;
  return { key: latin1FromBytes(put.key), value: latin1FromBytes(put.value), lease, prevKv, ignoreValue, ignoreLease };
}

export function rangeMessage(range: RangeRequest): rpc.RangeRequest {
  return create(RangeRequestSchema, {
    ...range,
    sortOrder: range.sortOrder as rpc.RangeRequest_SortOrder,
    sortTarget: range.sortTarget as rpc.RangeRequest_SortTarget,
    key: bytesFromLatin1(range.key),
    rangeEnd: bytesFromLatin1(range.rangeEnd),
    limit: BigInt(range.limit),
    revision: BigInt(range.revision),
    minModRevision: BigInt(range.minModRevision),
    maxModRevision: BigInt(range.maxModRevision),
    minCreateRevision: BigInt(range.minCreateRevision),
    maxCreateRevision: BigInt(range.maxCreateRevision),
  });
}

export function rangeShape(range: rpc.RangeRequest): RangeRequest {
  const { sortOrder, sortTarget, serializable, keysOnly, countOnly } = range;
  return {
    key: latin1FromBytes(range.key),
    rangeEnd: latin1FromBytes(range.rangeEnd),
    limit: clamp(range.limit),
    revision: clamp(range.revision),
    sortOrder,
    sortTarget,
    serializable,
    keysOnly,
    countOnly,
    minModRevision: clamp(range.minModRevision),
    maxModRevision: clamp(range.maxModRevision),
    minCreateRevision: clamp(range.minCreateRevision),
    maxCreateRevision: clamp(range.maxCreateRevision),
  };
}

export function deleteRangeMessage(request: DeleteRangeRequest): rpc.DeleteRangeRequest {
  const { key, rangeEnd, prevKv } = request;
  return create(DeleteRangeRequestSchema, {
    key: bytesFromLatin1(key),
    rangeEnd: bytesFromLatin1(rangeEnd),
    prevKv,
  });
}

export function deleteRangeShape(request: rpc.DeleteRangeRequest): DeleteRangeRequest {
  const { key, rangeEnd, prevKv } = request;
  return { key: latin1FromBytes(key), rangeEnd: latin1FromBytes(rangeEnd), prevKv };
}

function operandMessage(compare: Compare): rpc.Compare['targetUnion'] {
  switch (compare.target) {
    case 0:
      return { case: 'version', value: BigInt(compare.number) };
    case 1:
      return { case: 'createRevision', value: BigInt(compare.number) };
    case 2:
      return { case: 'modRevision', value: BigInt(compare.number) };
    case 3:
      return { case: 'value', value: bytesFromLatin1(compare.value) };
    case 4:
      return { case: 'lease', value: compare.lease };
    default:
      return { case: undefined };
  }
}

function compareMessage(compare: Compare): rpc.Compare {
  return create(CompareSchema, {
    result: compare.result as rpc.Compare_CompareResult,
    target: compare.target as rpc.Compare_CompareTarget,
    key: bytesFromLatin1(compare.key),
    rangeEnd: bytesFromLatin1(compare.rangeEnd),
    targetUnion: operandMessage(compare),
  });
}

const operandOfTarget = ['version', 'createRevision', 'modRevision', 'value', 'lease'];

function compareShape(compare: rpc.Compare): Compare {
  const union = operandOfTarget[compare.target] === compare.targetUnion.case ? compare.targetUnion.value : undefined;
  return {
    result: compare.result,
    target: compare.target,
    key: latin1FromBytes(compare.key),
    rangeEnd: latin1FromBytes(compare.rangeEnd),
    number: typeof union === 'bigint' && compare.target <= 2 ? clamp(union) : 0,
    value: union instanceof Uint8Array ? latin1FromBytes(union) : '',
    lease: typeof union === 'bigint' && compare.target === 4 ? union : 0n,
  };
}

function opMessage(op: RequestOp): rpc.RequestOp {
  switch (op.kind) {
    case 'range':
      return create(RequestOpSchema, { request: { case: 'requestRange', value: rangeMessage(op.range) } });
    case 'put':
      return create(RequestOpSchema, { request: { case: 'requestPut', value: putMessage(op.put) } });
    case 'deleteRange':
      return create(RequestOpSchema, {
        request: { case: 'requestDeleteRange', value: deleteRangeMessage(op.deleteRange) },
      });
    case 'txn':
      return create(RequestOpSchema, { request: { case: 'requestTxn', value: txnMessage(op.txn) } });
    case 'empty':
      return create(RequestOpSchema);
  }
}

function opShape(op: rpc.RequestOp): RequestOp {
  switch (op.request.case) {
    case 'requestRange':
      return { kind: 'range', range: rangeShape(op.request.value) };
    case 'requestPut':
      return { kind: 'put', put: putShape(op.request.value) };
    case 'requestDeleteRange':
      return { kind: 'deleteRange', deleteRange: deleteRangeShape(op.request.value) };
    case 'requestTxn':
      return { kind: 'txn', txn: txnShape(op.request.value) };
    case undefined:
      return { kind: 'empty' };
  }
}

export function txnMessage(txn: TxnRequest): rpc.TxnRequest {
  return create(TxnRequestSchema, {
    compare: txn.compare.map(compareMessage),
    success: txn.success.map(opMessage),
    failure: txn.failure.map(opMessage),
  });
}

export function txnShape(txn: rpc.TxnRequest): TxnRequest {
  return {
    compare: txn.compare.map(compareShape),
    success: txn.success.map(opShape),
    failure: txn.failure.map(opShape),
  };
}

export function watchShape({ requestUnion }: rpc.WatchRequest): WatchRequest {
  switch (requestUnion.case) {
    case 'createRequest': {
      const { key, rangeEnd, startRevision, progressNotify, filters, prevKv, watchId, fragment } = requestUnion.value;
      return {
        kind: 'create',
        create: {
          key: latin1FromBytes(key),
          rangeEnd: latin1FromBytes(rangeEnd),
          startRevision: clamp(startRevision),
          progressNotify,
          noPut: filters.includes(WatchCreateRequest_FilterType.NOPUT),
          noDelete: filters.includes(WatchCreateRequest_FilterType.NODELETE),
          prevKv,
          watchId,
          fragment,
        },
      };
    }
    case 'cancelRequest':
      return { kind: 'cancel', watchId: requestUnion.value.watchId };
    case 'progressRequest':
      return { kind: 'progress' };
    case undefined:
      return { kind: 'empty' };
  }
}
