import type { MessageInitShape } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';

/** One operation of a transaction, as an argument of `create`. */
export type Op = MessageInitShape<typeof etcdserverpb.RequestOpSchema>;
export type CompareInit = MessageInitShape<typeof etcdserverpb.CompareSchema>;

/** The operations of a transaction. */
export const op = {
  range: (value: MessageInitShape<typeof etcdserverpb.RangeRequestSchema>): Op => ({
    request: { case: 'requestRange', value },
  }),
  put: (value: MessageInitShape<typeof etcdserverpb.PutRequestSchema>): Op => ({
    request: { case: 'requestPut', value },
  }),
  delete: (value: MessageInitShape<typeof etcdserverpb.DeleteRangeRequestSchema>): Op => ({
    request: { case: 'requestDeleteRange', value },
  }),
  txn: (value: MessageInitShape<typeof etcdserverpb.TxnRequestSchema>): Op => ({
    request: { case: 'requestTxn', value },
  }),
} as const;

const { Compare_CompareTarget: Target } = etcdserverpb;

/** The operand of a comparison: the target together with the value of its kind. */
export const target = {
  version: (value: bigint): CompareInit => ({ target: Target.VERSION, targetUnion: { case: 'version', value } }),
  create: (value: bigint): CompareInit => ({ target: Target.CREATE, targetUnion: { case: 'createRevision', value } }),
  mod: (value: bigint): CompareInit => ({ target: Target.MOD, targetUnion: { case: 'modRevision', value } }),
  value: (value: Uint8Array): CompareInit => ({ target: Target.VALUE, targetUnion: { case: 'value', value } }),
  lease: (value: bigint): CompareInit => ({ target: Target.LEASE, targetUnion: { case: 'lease', value } }),
} as const;
