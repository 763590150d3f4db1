import { fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expectSameBytes } from './testing/codec-properties.ts';
import { txnResponseMessage } from './testing/generated-replies.ts';
import { headerInBothForms } from './testing/headers.ts';
import { txnResult } from './testing/shape-arbitraries.ts';
import { frameHeadroomBytes } from './frame.ts';
import { responseHeaderPrefix } from './response-header.ts';
import type { ResponseHeader } from './response-header.ts';
import type { TxnResult } from '@tenure/core';
import { encodeTxnResponseWithin } from './txn-response.ts';
import { etcdserverpb } from '@tenure/protocol';

const { TxnResponseSchema } = etcdserverpb;

function encodeWhole(header: ResponseHeader, result: TxnResult): Buffer {
  const framed = encodeTxnResponseWithin(header, result, Infinity);
  if (typeof framed === 'number') throw new Error('a reply was not written though there was room');
  return framed;
}

describe('the reply to a transaction', () => {
  test('is written as the generated codec writes it', () => {
    fc.assert(
      fc.property(headerInBothForms, txnResult, ({ header, message }, result) => {
        const whole = encodeWhole(header, result);
        expectSameBytes(whole, TxnResponseSchema, txnResponseMessage(message, result));
        const bytes = whole.length - frameHeadroomBytes;
        expect(encodeTxnResponseWithin(header, result, bytes)).toBeInstanceOf(Buffer);
        expect(encodeTxnResponseWithin(header, result, bytes - 1)).toBe(bytes);
      }),
    );
  });

  test('names the server in its own header, and only the revision in those inside it', () => {
    const header = { prefix: responseHeaderPrefix(1n, 2n), revision: 8, raftTerm: 3 };
    const put = { kind: 'put', revision: 8, put: { prevKv: undefined } } as const;
    const inner = { kind: 'txn', revision: 0, txn: { succeeded: false, responses: [put] } } as const;
    const framed = encodeWhole(header, { succeeded: true, responses: [put, inner] });
    const read = fromBinary(TxnResponseSchema, framed.subarray(frameHeadroomBytes));
    expect(read.header).toMatchObject({ clusterId: 1n, memberId: 2n, revision: 8n, raftTerm: 3n });
    const revisionAlone = { clusterId: 0n, memberId: 0n, revision: 8n, raftTerm: 0n };
    const nothing = { ...revisionAlone, revision: 0n };
    const innerPut = { response: { case: 'responsePut', value: { header: revisionAlone } } };
    expect(read.responses).toMatchObject([
      innerPut,
      { response: { case: 'responseTxn', value: { header: nothing, responses: [innerPut] } } },
    ]);
  });
});
