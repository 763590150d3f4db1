import {
  decodeDeleteRangeRequest,
  decodeLeaseGrantRequest,
  decodeLeaseKeepAliveRequest,
  decodeLeaseRevokeRequest,
  decodeLeaseTimeToLiveRequest,
  decodePutRequest,
  decodeRangeRequest,
  decodeTxnRequest,
} from '@tenure/codec';
import type { Command, RequestOp } from '@tenure/core';

/** What a request needs permission for. */
export type AccessNeed =
  | { readonly kind: 'operation'; readonly operation: Command | RequestOp }
  /** To read all keys of a lease. */
  | { readonly kind: 'keysOf'; readonly id: bigint };

export interface NeededAccess {
  readonly need: AccessNeed;
  /** The lease whose keys matter. */
  readonly isOfLease: boolean;
  /** The server answers by what it has, which may be old. */
  readonly isLocal: boolean;
}

/** Undefined for a request that is not judged. */
export function neededBy(path: string, bytes: Uint8Array): NeededAccess | undefined {
  const request = Buffer.from(bytes);
  const method = path.slice(path.lastIndexOf('/') + 1);
  switch (method) {
    case 'Range': {
      const range = decodeRangeRequest(request);
      return { ...of({ kind: 'range', range }), isLocal: range.serializable };
    }
    case 'Put':
      return { ...of({ kind: 'put', put: decodePutRequest(request) }), isOfLease: true };
    case 'DeleteRange':
      return of({ kind: 'deleteRange', deleteRange: decodeDeleteRangeRequest(request) });
    case 'Txn':
      return { ...of({ kind: 'txn', txn: decodeTxnRequest(request) }), isOfLease: true };
    case 'Compact':
      return of({ kind: 'compact', revision: 0 });
    case 'LeaseGrant':
      return of({ kind: 'leaseGrant', id: decodeLeaseGrantRequest(request).id, ttlMs: 0, label: '' });
    case 'LeaseRevoke':
      return { ...of({ kind: 'leaseRevoke', id: decodeLeaseRevokeRequest(request) }), isOfLease: true };
    case 'LeaseKeepAlive':
      return { ...of({ kind: 'leaseRevoke', id: decodeLeaseKeepAliveRequest(request) }), isOfLease: true };
    case 'LeaseTimeToLive': {
      const { id, keys } = decodeLeaseTimeToLiveRequest(request);
      if (!keys) return of({ kind: 'leaseGrant', id, ttlMs: 0, label: '' });
      return { need: { kind: 'keysOf', id }, isOfLease: true, isLocal: false };
    }
    default:
      return undefined;
  }
}

function of(operation: Command | RequestOp): NeededAccess {
  return { need: { kind: 'operation', operation }, isOfLease: false, isLocal: false };
}
