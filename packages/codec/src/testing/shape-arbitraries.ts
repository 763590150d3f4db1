import fc from 'fast-check';
import type {
  Compare,
  DeleteRangeRequest,
  DeleteRangeResult,
  KeyValue,
  KvEvent,
  PutRequest,
  PutResult,
  RangeRequest,
  RangeResult,
  RequestOp,
  ResponseOp,
  TxnRequest,
  TxnResult,
} from '@tenure/core';

const powers = [7, 14, 21, 28, 31, 32, 35, 42, 49, 53].flatMap((bits) => [2 ** bits - 1, 2 ** bits]);
const edges = [0, 1, ...powers].filter(Number.isSafeInteger);
const wideEdges = [31n, 32n, 35n, 42n, 49n, 53n, 56n, 63n].flatMap((bits) => [2n ** bits - 1n, 2n ** bits]);

/** An int64 that is a safe integer, often at an edge of the varint's sizes. */
export const safeInteger: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(...edges, ...edges.map((edge) => 0 - edge)),
  fc.maxSafeInteger(),
  fc.nat(1000),
);

const int32: fc.Arbitrary<number> = fc.oneof(fc.nat(5), fc.integer());

export const int64: fc.Arbitrary<bigint> = fc.oneof(
  fc.constantFrom(0n, 1n, ...wideEdges, ...wideEdges.map((edge) => -edge)).map((value) => BigInt.asIntN(64, value)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
);

const bytes: fc.Arbitrary<string> = fc
  .oneof(
    { weight: 8, arbitrary: fc.uint8Array({ maxLength: 40 }) },
    { weight: 2, arbitrary: fc.uint8Array({ maxLength: 255, size: 'max' }) },
    { weight: 1, arbitrary: fc.nat(20_000).map((length) => new Uint8Array(length).fill(0xe9)) },
  )
  .map((array) => Buffer.from(array).toString('latin1'));

export const text: fc.Arbitrary<string> = fc.string({ unit: 'binary', maxLength: 80 });

const keyValue: fc.Arbitrary<KeyValue> = fc.record({
  key: bytes,
  value: bytes,
  createRevision: safeInteger,
  modRevision: safeInteger,
  version: safeInteger,
  lease: int64,
});

export const rangeRequest: fc.Arbitrary<RangeRequest> = fc.record({
  key: bytes,
  rangeEnd: bytes,
  limit: safeInteger,
  revision: safeInteger,
  sortOrder: int32,
  sortTarget: int32,
  serializable: fc.boolean(),
  keysOnly: fc.boolean(),
  countOnly: fc.boolean(),
  minModRevision: safeInteger,
  maxModRevision: safeInteger,
  minCreateRevision: safeInteger,
  maxCreateRevision: safeInteger,
});

export const rangeResult: fc.Arbitrary<RangeResult> = fc.record({
  kvs: fc.array(keyValue, { maxLength: 5 }),
  more: fc.boolean(),
  count: safeInteger,
});

export const putRequest: fc.Arbitrary<PutRequest> = fc.record({
  key: bytes,
  value: bytes,
  lease: int64,
  prevKv: fc.boolean(),
  ignoreValue: fc.boolean(),
  ignoreLease: fc.boolean(),
});

export const putResult: fc.Arbitrary<PutResult> = fc.record({ prevKv: fc.option(keyValue, { nil: undefined }) });

export const deleteRangeRequest: fc.Arbitrary<DeleteRangeRequest> = fc.record({
  key: bytes,
  rangeEnd: bytes,
  prevKv: fc.boolean(),
});

export const deleteRangeResult: fc.Arbitrary<DeleteRangeResult> = fc.record({
  deleted: fc.nat(3),
  prevKvs: fc.array(keyValue, { maxLength: 3 }),
});

/** Only the operand of the named target is set, as after decoding. */
const compare: fc.Arbitrary<Compare> = fc
  .record({
    result: int32,
    target: int32,
    key: bytes,
    rangeEnd: bytes,
    number: safeInteger,
    value: bytes,
    lease: int64,
  })
  .map((it) => ({
    ...it,
    number: it.target >= 0 && it.target <= 2 ? it.number : 0,
    value: it.target === 3 ? it.value : '',
    lease: it.target === 4 ? it.lease : 0n,
  }));

const { txn, result } = fc.letrec<{ txn: TxnRequest; op: RequestOp; result: TxnResult; response: ResponseOp }>(
  (tie) => ({
    op: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.record({ kind: fc.constant('put' as const), put: putRequest }),
      fc.record({ kind: fc.constant('range' as const), range: rangeRequest }),
      fc.record({ kind: fc.constant('deleteRange' as const), deleteRange: deleteRangeRequest }),
      fc.record({ kind: fc.constant('empty' as const) }),
      fc.record({ kind: fc.constant('txn' as const), txn: tie('txn') }),
    ),
    txn: fc.record({
      compare: fc.array(compare, { maxLength: 3 }),
      success: fc.array(tie('op'), { maxLength: 3 }),
      failure: fc.array(tie('op'), { maxLength: 3 }),
    }),
    response: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.record({ kind: fc.constant('put' as const), revision: safeInteger, put: putResult }),
      fc.record({ kind: fc.constant('range' as const), revision: safeInteger, range: rangeResult }),
      fc.record({ kind: fc.constant('deleteRange' as const), revision: safeInteger, deleteRange: deleteRangeResult }),
      fc.record({ kind: fc.constant('txn' as const), revision: fc.constant(0 as const), txn: tie('result') }),
    ),
    result: fc.record({ succeeded: fc.boolean(), responses: fc.array(tie('response'), { maxLength: 4 }) }),
  }),
);

export const txnRequest: fc.Arbitrary<TxnRequest> = txn;
export const txnResult: fc.Arbitrary<TxnResult> = result;

export const kvEvent: fc.Arbitrary<KvEvent> = fc.record({
  type: fc.constantFrom('put', 'delete'),
  kv: keyValue,
  prevKv: fc.option(keyValue, { nil: undefined }),
});
