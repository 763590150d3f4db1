import { create } from '@bufbuild/protobuf';
import { bytesFromLatin1 } from '../latin1.ts';
import type { DeleteRangeResult, KeyValue, KvEvent, PutResult, RangeResult, ResponseOp, TxnResult } from '@tenure/core';
import { etcdserverpb, type etcdserverpb as rpc, mvccpb, type mvccpb as kv } from '@tenure/protocol';

const { EventSchema, KeyValueSchema } = mvccpb;
const {
  DeleteRangeResponseSchema,
  PutResponseSchema,
  RangeResponseSchema,
  ResponseHeaderSchema,
  ResponseOpSchema,
  TxnResponseSchema,
} = etcdserverpb;

/** The generated messages of replies, made from the types that the hand-written codecs encode. */

function keyValueMessage(it: KeyValue): kv.KeyValue {
  return create(KeyValueSchema, {
    key: bytesFromLatin1(it.key),
    value: bytesFromLatin1(it.value),
    createRevision: BigInt(it.createRevision),
    modRevision: BigInt(it.modRevision),
    version: BigInt(it.version),
    lease: it.lease,
  });
}

function optionalKeyValue(it: KeyValue | undefined): { prevKv: kv.KeyValue } | Record<never, never> {
  return it === undefined ? {} : { prevKv: keyValueMessage(it) };
}

export function eventMessage(event: KvEvent, withPrevKv: boolean): kv.Event {
  return create(EventSchema, {
    type: event.type === 'put' ? 0 : 1,
    kv: keyValueMessage(event.kv),
    ...optionalKeyValue(withPrevKv ? event.prevKv : undefined),
  });
}

export function putResponseMessage(header: rpc.ResponseHeader, result: PutResult): rpc.PutResponse {
  return create(PutResponseSchema, { header, ...optionalKeyValue(result.prevKv) });
}

export function rangeResponseMessage(header: rpc.ResponseHeader, result: RangeResult): rpc.RangeResponse {
  const { more } = result;
  return create(RangeResponseSchema, {
    header,
    kvs: result.kvs.map(keyValueMessage),
    more,
    count: BigInt(result.count),
  });
}

export function deleteRangeResponseMessage(
  header: rpc.ResponseHeader,
  result: DeleteRangeResult,
): rpc.DeleteRangeResponse {
  return create(DeleteRangeResponseSchema, {
    header,
    deleted: BigInt(result.deleted),
    prevKvs: result.prevKvs.map(keyValueMessage),
  });
}

function opMessage(op: ResponseOp): rpc.ResponseOp {
  const header = create(ResponseHeaderSchema, { revision: BigInt(op.revision) });
  switch (op.kind) {
    case 'range': {
      const value = rangeResponseMessage(header, op.range);
      return create(ResponseOpSchema, { response: { case: 'responseRange', value } });
    }
    case 'put': {
      const value = putResponseMessage(header, op.put);
      return create(ResponseOpSchema, { response: { case: 'responsePut', value } });
    }
    case 'deleteRange': {
      const value = deleteRangeResponseMessage(header, op.deleteRange);
      return create(ResponseOpSchema, { response: { case: 'responseDeleteRange', value } });
    }
    case 'txn': {
      const value = txnResponseMessage(header, op.txn);
      return create(ResponseOpSchema, { response: { case: 'responseTxn', value } });
    }
  }
}

export function txnResponseMessage(header: rpc.ResponseHeader, result: TxnResult): rpc.TxnResponse {
  const { succeeded, responses } = result;
  return create(TxnResponseSchema, { header, succeeded, responses: responses.map(opMessage) });
}
