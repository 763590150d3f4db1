import { toBinary, create } from '@bufbuild/protobuf';
import {
  encodeDeleteRangeRequest,
  encodeLeaseGrantRequest,
  encodePutRequest,
  encodeRangeRequest,
  encodeTxnRequest,
  frameHeadroomBytes,
} from '@tenure/codec';
import { type Command, type RangeRequest, isReadOnlyTxn } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import { tagOfCommand } from './request-tag.ts';

type WriteKind = 'put' | 'deleteRange' | 'txn' | 'compact' | 'leaseGrant' | 'leaseRevoke';

/** A request of a simulated client about keys, in the terms of the core. A transaction may also be one of reads. */
export type KeyRequest =
  | Extract<Command, { readonly kind: WriteKind }>
  | { readonly kind: 'range'; readonly range: RangeRequest }
  /** The keys that are attached to a lease. */
  | { readonly kind: 'leaseKeys'; readonly id: bigint };

export interface EncodedRequest {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** Undefined for a read, and for a compaction. */
export function tagOfRequest(request: KeyRequest): string | undefined {
  if (request.kind === 'range' || request.kind === 'leaseKeys' || isReadOnly(request)) return undefined;
  return tagOfCommand(request);
}

/** A transaction without writes in any branch: no server puts it into the log. */
export function isReadOnly(request: KeyRequest): boolean {
  return request.kind === 'txn' && isReadOnlyTxn(request.txn);
}

/** Without the frame of gRPC. */
export function encodeRequest(request: KeyRequest): EncodedRequest {
  switch (request.kind) {
    case 'range':
      return kv('Range', encodeRangeRequest(request.range));
    case 'put':
      return kv('Put', encodePutRequest(request.put));
    case 'deleteRange':
      return kv('DeleteRange', encodeDeleteRangeRequest(request.deleteRange));
    case 'txn':
      return kv('Txn', encodeTxnRequest(request.txn));
    case 'compact': {
      const schema = etcdserverpb.CompactionRequestSchema;
      const bytes = toBinary(schema, create(schema, { revision: BigInt(request.revision) }));
      return { path: '/etcdserverpb.KV/Compact', bytes };
    }
    case 'leaseGrant': {
      const { id, ttlMs, label } = request;
      const framed = encodeLeaseGrantRequest({ id, ttlSeconds: 0, ttlMs, label });
      return { path: '/etcdserverpb.Lease/LeaseGrant', bytes: framed.subarray(frameHeadroomBytes) };
    }
    case 'leaseRevoke': {
      const schema = etcdserverpb.LeaseRevokeRequestSchema;
      return { path: '/etcdserverpb.Lease/LeaseRevoke', bytes: toBinary(schema, create(schema, { ID: request.id })) };
    }
    case 'leaseKeys': {
      const schema = etcdserverpb.LeaseTimeToLiveRequestSchema;
      const bytes = toBinary(schema, create(schema, { ID: request.id, keys: true }));
      return { path: '/etcdserverpb.Lease/LeaseTimeToLive', bytes };
    }
  }
}

function kv(method: string, framed: Buffer): EncodedRequest {
  return { path: `/etcdserverpb.KV/${method}`, bytes: framed.subarray(frameHeadroomBytes) };
}
