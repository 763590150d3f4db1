import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  expectSameBytes,
  readsWhatTheGeneratedReads,
  refusesExactlyWhatIsInvalid,
} from './testing/codec-properties.ts';
import { txnMessage, txnShape } from './testing/generated-requests.ts';
import { txnRequest } from './testing/shape-arbitraries.ts';
import { DecodeError } from './decode-error.ts';
import { encodeFramed, frameHeadroomBytes } from './frame.ts';
import type { TxnRequest } from '@tenure/core';
import { maxTxnDepth } from './txn-depth.ts';
import { decodeBoundedTxnRequest, decodeTxnRequest, encodeTxnRequest } from './txn-request.ts';
import { etcdserverpb } from '@tenure/protocol';

const { TxnRequestSchema } = etcdserverpb;

const codec = { schema: TxnRequestSchema, decode: decodeTxnRequest, shape: txnShape };

/** A transaction in a transaction in ..., `depth` in all. */
function nested(depth: number): TxnRequest {
  const inner: TxnRequest = { compare: [], success: [], failure: [] };
  return depth === 1 ? inner : { ...inner, success: [{ kind: 'txn', txn: nested(depth - 1) }] };
}

describe('a transaction', () => {
  test('is written as the generated codec writes it, and read back', () => {
    fc.assert(
      fc.property(txnRequest, (txn) => {
        const framed = encodeTxnRequest(txn);
        expectSameBytes(framed, TxnRequestSchema, txnMessage(txn));
        expect(decodeTxnRequest(framed, frameHeadroomBytes)).toEqual(txn);
      }),
    );
  });

  test('is read from the middle of a buffer', () => {
    fc.assert(
      fc.property(txnRequest, (txn) => {
        const message = encodeTxnRequest(txn).subarray(frameHeadroomBytes);
        const out = Buffer.concat([Buffer.alloc(4, 0xaa), message, Buffer.alloc(6, 0xaa)]);
        expect(decodeTxnRequest(out, 4, 4 + message.length)).toEqual(txn);
      }),
      { numRuns: 20 },
    );
  });

  test('is read as the generated codec reads it', () => readsWhatTheGeneratedReads(codec));

  test('is refused exactly when it is no message', () => refusesExactlyWhatIsInvalid(codec));

  test('may nest up to the limit and no deeper', () => {
    const deepest = nested(maxTxnDepth);
    expect(decodeTxnRequest(encodeTxnRequest(deepest), frameHeadroomBytes)).toEqual(deepest);
    const tooDeep = encodeTxnRequest(nested(maxTxnDepth + 1));
    expect(() => decodeTxnRequest(tooDeep, frameHeadroomBytes)).toThrow(new DecodeError('TooDeep'));
  });

  test('is read up to as many comparisons and ops as are wanted, with those of nested ones', () => {
    const many = encodeTxnRequest({
      compare: [],
      success: Array.from({ length: 100 }, () => ({ kind: 'empty' })),
      failure: [],
    });
    const request = many.subarray(frameHeadroomBytes);
    expect(decodeBoundedTxnRequest(request, 100).success).toHaveLength(100);
    expect(decodeBoundedTxnRequest(request, 7).success).toHaveLength(7);
    const inner: TxnRequest = { compare: [], success: [{ kind: 'empty' }, { kind: 'empty' }], failure: [] };
    const outer: TxnRequest = { compare: [], success: [{ kind: 'txn', txn: inner }, { kind: 'empty' }], failure: [] };
    const cut = decodeBoundedTxnRequest(encodeTxnRequest(outer).subarray(frameHeadroomBytes), 2);
    expect(cut.success).toEqual([{ kind: 'txn', txn: { ...inner, success: [{ kind: 'empty' }] } }]);
  });

  test('takes a comparison with the operand of another target for one with none', () => {
    const message = create(TxnRequestSchema, {
      compare: [{ target: 3, key: Buffer.from('k'), targetUnion: { case: 'version', value: 7n } }],
    });
    const txn = decodeTxnRequest(encodeFramed(TxnRequestSchema, message), frameHeadroomBytes);
    expect(txn.compare).toEqual([{ result: 0, target: 3, key: 'k', rangeEnd: '', number: 0, value: '', lease: 0n }]);
  });

  test('merges an op that comes in two parts of one kind, and replaces one of another kind', () => {
    const part = (kind: number, ...bytes: number[]): number[] => [kind, bytes.length, ...bytes];
    const merged = [...part(0x12, ...part(0x0a, 0x6b)), ...part(0x12, ...part(0x12, 0x76))];
    const replaced = [...part(0x12, ...part(0x0a, 0x6b)), ...part(0x1a, ...part(0x12, 0x7a))];
    const txn = decodeTxnRequest(Buffer.from([...part(0x12, ...merged), ...part(0x12, ...replaced)]));
    expect(txn.success).toMatchObject([
      { kind: 'put', put: { key: 'k', value: 'v' } },
      { kind: 'deleteRange', deleteRange: { key: '', rangeEnd: 'z' } },
    ]);
  });
});
