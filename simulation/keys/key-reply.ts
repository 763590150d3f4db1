import { fromBinary } from '@bufbuild/protobuf';
import { latin1FromBytes } from '@tenure/codec';
import type {
  CommandResponse,
  DeleteRangeResult,
  KeyValue,
  PutResult,
  RangeResult,
  ResponseOp,
  TxnResult,
} from '@tenure/core';
import { etcdserverpb, type mvccpb } from '@tenure/protocol';
import type { KeyRequest } from './key-request.ts';

/** What a server has answered to a request about keys. */
export interface KeyReply {
  /** From the header. */
  readonly revision: number;
  readonly result:
    | { readonly kind: 'range'; readonly range: RangeResult }
    | { readonly kind: 'put'; readonly put: PutResult }
    | { readonly kind: 'deleteRange'; readonly deleteRange: DeleteRangeResult }
    | { readonly kind: 'txn'; readonly txn: TxnResult }
    | { readonly kind: 'leaseKeys'; readonly exists: boolean; readonly keys: readonly string[] }
    | { readonly kind: 'compact' | 'leaseGrant' | 'leaseRevoke' };
}

export function decodeReply(request: KeyRequest, bytes: Uint8Array): KeyReply {
  switch (request.kind) {
    case 'range': {
      const reply = fromBinary(etcdserverpb.RangeResponseSchema, bytes);
      return { revision: revisionOf(reply), result: { kind: 'range', range: rangeResult(reply) } };
    }
    case 'put': {
      const reply = fromBinary(etcdserverpb.PutResponseSchema, bytes);
      return { revision: revisionOf(reply), result: { kind: 'put', put: putResult(reply) } };
    }
    case 'deleteRange': {
      const reply = fromBinary(etcdserverpb.DeleteRangeResponseSchema, bytes);
      return { revision: revisionOf(reply), result: { kind: 'deleteRange', deleteRange: deleteResult(reply) } };
    }
    case 'txn': {
      const reply = fromBinary(etcdserverpb.TxnResponseSchema, bytes);
      return { revision: revisionOf(reply), result: { kind: 'txn', txn: txnResult(reply) } };
    }
    case 'leaseKeys': {
      const reply = fromBinary(etcdserverpb.LeaseTimeToLiveResponseSchema, bytes);
      const keys = reply.keys.map(latin1FromBytes);
      return { revision: revisionOf(reply), result: { kind: 'leaseKeys', exists: reply.TTL >= 0n, keys } };
    }
    case 'compact':
      return plain(request.kind, fromBinary(etcdserverpb.CompactionResponseSchema, bytes));
    case 'leaseGrant':
      return plain(request.kind, fromBinary(etcdserverpb.LeaseGrantResponseSchema, bytes));
    case 'leaseRevoke':
      return plain(request.kind, fromBinary(etcdserverpb.LeaseRevokeResponseSchema, bytes));
  }
}

/** Equal for a reply and for the response of the model that it should be. */
export function textOfResult(result: KeyReply['result'] | CommandResponse): string {
  switch (result.kind) {
    case 'range': {
      const { kvs, more, count } = result.range;
      return `${kvs.map(textOfKeyValue).join(', ')} of ${count}${more ? ', more' : ''}`;
    }
    case 'put':
      return `previous ${textOfKeyValue(result.put.prevKv)}`;
    case 'deleteRange': {
      const { deleted, prevKvs } = result.deleteRange;
      return `deleted ${deleted}: ${prevKvs.map(textOfKeyValue).join(', ')}`;
    }
    case 'txn':
      return textOfTxn(result.txn);
    default:
      return result.kind;
  }
}

/** Long values are cut where only their length is of interest. */
export function textOfKeyValue(kv: KeyValue | undefined): string {
  if (kv === undefined) return 'none';
  const { key, value, createRevision, modRevision, version, lease } = kv;
  const shown = value.length <= 60 ? value : `${value.slice(0, 20)}..${value.length}`;
  const attached = lease === 0n ? '' : ` lease ${lease}`;
  return `${key}=${shown} (${createRevision} ${modRevision} ${version})${attached}`;
}

export function keyValueOf(kv: mvccpb.KeyValue): KeyValue {
  return {
    key: latin1FromBytes(kv.key),
    value: latin1FromBytes(kv.value),
    createRevision: Number(kv.createRevision),
    modRevision: Number(kv.modRevision),
    version: Number(kv.version),
    lease: kv.lease,
  };
}

function textOfTxn({ succeeded, responses }: TxnResult): string {
  return `${succeeded ? 'then' : 'else'} [${responses.map((op) => `${op.revision} ${textOfResult(op)}`).join('; ')}]`;
}

function plain(kind: 'compact' | 'leaseGrant' | 'leaseRevoke', reply: WithHeader): KeyReply {
  return { revision: revisionOf(reply), result: { kind } };
}

interface WithHeader {
  readonly header?: etcdserverpb.ResponseHeader | undefined;
}

function revisionOf({ header }: WithHeader): number {
  return Number(header?.revision ?? 0n);
}

function rangeResult({ kvs, more, count }: etcdserverpb.RangeResponse): RangeResult {
  return { kvs: kvs.map(keyValueOf), more, count: Number(count) };
}

function putResult({ prevKv }: etcdserverpb.PutResponse): PutResult {
  return { prevKv: prevKv === undefined ? undefined : keyValueOf(prevKv) };
}

function deleteResult({ deleted, prevKvs }: etcdserverpb.DeleteRangeResponse): DeleteRangeResult {
  return { deleted: Number(deleted), prevKvs: prevKvs.map(keyValueOf) };
}

function txnResult({ succeeded, responses }: etcdserverpb.TxnResponse): TxnResult {
  return { succeeded, responses: responses.map(responseOp) };
}

function responseOp({ response }: etcdserverpb.ResponseOp): ResponseOp {
  switch (response.case) {
    case 'responseRange':
      return { kind: 'range', revision: revisionOf(response.value), range: rangeResult(response.value) };
    case 'responsePut':
      return { kind: 'put', revision: revisionOf(response.value), put: putResult(response.value) };
    case 'responseDeleteRange':
      return { kind: 'deleteRange', revision: revisionOf(response.value), deleteRange: deleteResult(response.value) };
    case 'responseTxn':
      return { kind: 'txn', revision: 0, txn: txnResult(response.value) };
    default:
      throw new Error('a transaction was answered with an empty response');
  }
}
