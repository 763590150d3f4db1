import { create, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import {
  decodePutRequest,
  decodeRangeRequest,
  encodeRangeRequest,
  encodeTxnRequest,
  frameHeadroomBytes,
} from '@tenure/codec';
import { type RangeRequest, type RequestOp } from '@tenure/core';
import { grantLeases } from '../../benchmarks/src/load/lease-load.ts';
import { Refusal } from '../../conformance/client/refusal.ts';
import { putMany } from './put-many.ts';
import type { TestedServer } from './tested-server.ts';

/** The lease that has all keys. */
const leaseOfAllKeys = 2_000_000_000;
const attackRanges = 1_920;

/** Reads of many keys and leases. Those that return a list resolve with the bytes of the reply. */
export class LargeReads {
  readonly #server: TestedServer;

  private constructor(server: TestedServer) {
    this.#server = server;
  }

  /** Puts the keys, all with one lease, and grants as many other leases. */
  static async prepare(server: TestedServer, size: { keys: number; leases: number }): Promise<LargeReads> {
    const ttlSeconds = 3_600;
    await grantLeases(server, { first: leaseOfAllKeys, last: leaseOfAllKeys, ttlSeconds });
    await grantLeases(server, { last: size.leases, ttlSeconds });
    await putMany(server.client, size.keys, (at) => {
      return {
        key: `read/${String(at).padStart(8, '0')}`,
        value: `value ${size.keys - at}`,
        lease: BigInt(leaseOfAllKeys),
      };
    });
    return new LargeReads(server);
  }

  range(options: Partial<RangeRequest>): Promise<number> {
    const request = encodeRangeRequest({ ...wholeRange, ...options }).subarray(frameHeadroomBytes);
    return this.#calls('/etcdserverpb.KV/Range', [request]);
  }

  listLeases(atOnce: number): Promise<number> {
    return this.#calls(
      '/etcdserverpb.Lease/LeaseLeases',
      Array.from({ length: atOnce }, () => Buffer.alloc(0)),
    );
  }

  keysOfLease(): Promise<number> {
    const schema = etcdserverpb.LeaseTimeToLiveRequestSchema;
    const request = toBinary(schema, create(schema, { ID: BigInt(leaseOfAllKeys), keys: true }));
    return this.#calls('/etcdserverpb.Lease/LeaseTimeToLive', [Buffer.from(request)]);
  }

  /** A transaction that puts a key and reads as many rows as `rows` says. */
  largestTxn(rows: number): Promise<number> {
    const rangeEnd = `read/${String(rows).padStart(8, '0')}`;
    return this.#calls('/etcdserverpb.KV/Txn', [txnOf([{ ...wholeRange, rangeEnd }])]);
  }

  /** Requests of 27 KB that once made a server unusable; each must be refused. */
  async attack(atOnce: number, countOnly: boolean): Promise<void> {
    const ranges = Array.from({ length: attackRanges }, () => ({ ...wholeRange, keysOnly: true, countOnly }));
    const request = nestedTxnOf(ranges);
    const outcomes = await Promise.all(
      Array.from({ length: atOnce }, () => this.#server.client.unaryRaw('/etcdserverpb.KV/Txn', request)),
    );
    for (const outcome of outcomes) {
      if (outcome.ok) throw new Error('a transaction over too many rows was applied');
      if (outcome.details !== 'etcdserver: request is too large') throw new Refusal(outcome);
    }
  }

  async #calls(path: string, requests: readonly Buffer[]): Promise<number> {
    const outcomes = await Promise.all(requests.map((request) => this.#server.client.unaryRaw(path, request)));
    let bytes = 0;
    for (const outcome of outcomes) {
      if (!outcome.ok) throw new Refusal(outcome);
      bytes = outcome.response.length;
    }
    return bytes;
  }
}

/** The codec decodes it with every field at its default. */
const emptyMessage = Buffer.alloc(0);
const wholeRange: RangeRequest = { ...decodeRangeRequest(emptyMessage), key: 'read/', rangeEnd: 'read0' };
const put: RequestOp = { kind: 'put', put: { ...decodePutRequest(emptyMessage), key: 'other' } };

function txnOf(ranges: readonly RangeRequest[]): Buffer {
  const success = [...ranges.map((range): RequestOp => ({ kind: 'range', range })), put];
  return encodeTxnRequest({ compare: [], success, failure: [] }).subarray(frameHeadroomBytes);
}

/** As many operations as etcd's limit allows only in nested transactions. */
function nestedTxnOf(ranges: readonly RangeRequest[]): Buffer {
  const success: RequestOp[] = [put];
  for (let at = 0; at < ranges.length; at += 60) {
    const inner = ranges.slice(at, at + 60).map((range): RequestOp => ({ kind: 'range', range }));
    success.push({ kind: 'txn', txn: { compare: [], success: inner, failure: [] } });
  }
  return encodeTxnRequest({ compare: [], success, failure: [] }).subarray(frameHeadroomBytes);
}
