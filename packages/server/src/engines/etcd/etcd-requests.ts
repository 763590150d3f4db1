import type { MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import type { mvccpb } from '@tenure/protocol';
import type { KeyRange } from './log-keys.ts';

/** The parts of transactions, in the form of the generated messages. */

export type Compare = MessageInitShape<typeof etcdserverpb.CompareSchema>;
export type RequestOp = MessageInitShape<typeof etcdserverpb.RequestOpSchema>;

const { Compare_CompareResult: result, Compare_CompareTarget: target } = etcdserverpb;

export function putOp(key: Buffer, value: Uint8Array): RequestOp {
  return { request: { case: 'requestPut', value: { key, value } } };
}

export function getOp(key: Buffer): RequestOp {
  return { request: { case: 'requestRange', value: { key } } };
}

export function rangeOp(range: KeyRange, limit: number): RequestOp {
  return { request: { case: 'requestRange', value: { ...range, limit: BigInt(limit) } } };
}

export function deleteOp(range: KeyRange): RequestOp {
  return { request: { case: 'requestDeleteRange', value: range } };
}

export function valueIs(key: Buffer, value: Uint8Array): Compare {
  return { key, target: target.VALUE, result: result.EQUAL, targetUnion: { case: 'value', value } };
}

/** 0 for a key that does not exist. */
export function modRevisionIs(key: Buffer, revision: bigint): Compare {
  return { key, target: target.MOD, result: result.EQUAL, targetUnion: { case: 'modRevision', value: revision } };
}

export function exists(key: Buffer): Compare {
  return { key, target: target.VERSION, result: result.GREATER, targetUnion: { case: 'version', value: 0n } };
}

export function holdsNothing(range: KeyRange): Compare {
  return { ...range, target: target.VERSION, result: result.EQUAL, targetUnion: { case: 'version', value: 0n } };
}

/** The result of the read operation at `at`; empty if that operation was not a read. */
export function keysRead(answer: etcdserverpb.TxnResponse, at: number): readonly mvccpb.KeyValue[] {
  const { response } = answer.responses[at] ?? {};
  return response?.case === 'responseRange' ? response.value.kvs : [];
}
