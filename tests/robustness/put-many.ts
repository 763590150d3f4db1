import { encodeTxnRequest, frameHeadroomBytes } from '@tenure/codec';
import { type RequestOp } from '@tenure/core';
import type { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { Refusal } from '../../conformance/client/refusal.ts';

/** The default limit of a transaction. */
const putsPerTxn = 128;
const txnsUnderWay = 16;

export interface NewKey {
  readonly key: string;
  readonly value: string;
  readonly lease: bigint;
}

/** Puts many keys quickly, in transactions. */
export async function putMany(client: GrpcClient, count: number, keyOf: (index: number) => NewKey): Promise<void> {
  let next = 0;
  const write = async (): Promise<void> => {
    while (next < count) {
      const success: RequestOp[] = [];
      while (success.length < putsPerTxn && next < count) {
        const put = { ...keyOf(next), prevKv: false, ignoreValue: false, ignoreLease: false };
        success.push({ kind: 'put', put });
        next += 1;
      }
      const txn = encodeTxnRequest({ compare: [], success, failure: [] }).subarray(frameHeadroomBytes);
      const outcome = await client.unaryRaw('/etcdserverpb.KV/Txn', txn);
      if (!outcome.ok) throw new Refusal(outcome);
    }
  };
  await Promise.all(Array.from({ length: txnsUnderWay }, write));
}
