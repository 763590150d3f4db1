import { fromBinary } from '@bufbuild/protobuf';
import { etcdserverpb, type RpcMethod, v3electionpb, v3lockpb } from '@tenure/protocol';

/** The keys and leases of the server under test that must not change. */
export interface Existing {
  readonly keys: ReadonlySet<string>;
  readonly leases: ReadonlySet<bigint>;
}

const maxTxnOps = 128;
const maxTtlSeconds = 9_000_000_000n;

/**
 * Whether a request might change the content of the server: false only for one that must be refused, that only reads,
 * or that finds nothing to change. Decoded with the generated code, which the server does not use for frequent
 * messages; a message that this code rejects must be refused.
 */
export function mayChange(method: RpcMethod, request: Uint8Array, existing: Existing): boolean {
  const read = readers[method.path];
  if (read === undefined) return false;
  try {
    return read(request, existing);
  } catch {
    return false;
  }
}

type Reader = (request: Uint8Array, existing: Existing) => boolean;

const readers: Readonly<Record<string, Reader>> = {
  '/etcdserverpb.KV/Put': (bytes, existing) => {
    return putMayChange(fromBinary(etcdserverpb.PutRequestSchema, bytes), existing);
  },
  '/etcdserverpb.KV/DeleteRange': (bytes, existing) => {
    return deleteMayChange(fromBinary(etcdserverpb.DeleteRangeRequestSchema, bytes), existing);
  },
  '/etcdserverpb.KV/Txn': (bytes, existing) => {
    const txn = fromBinary(etcdserverpb.TxnRequestSchema, bytes);
    return !isRefused(txn) && txnMayChange(txn, existing);
  },
  '/etcdserverpb.KV/Compact': (bytes) => fromBinary(etcdserverpb.CompactionRequestSchema, bytes).revision > 0n,
  '/etcdserverpb.Lease/LeaseGrant': (bytes, { leases }) => {
    const { ID, TTL, TTLMs } = fromBinary(etcdserverpb.LeaseGrantRequestSchema, bytes);
    const isTooLong = TTLMs === 0n ? TTL > maxTtlSeconds : TTLMs > maxTtlSeconds * 1000n;
    return !leases.has(ID) && !isTooLong;
  },
  '/etcdserverpb.Lease/LeaseRevoke': (bytes, { leases }) => {
    return leases.has(fromBinary(etcdserverpb.LeaseRevokeRequestSchema, bytes).ID);
  },
  '/etcdserverpb.Maintenance/Alarm': (bytes) => {
    const { GET } = etcdserverpb.AlarmRequest_AlarmAction;
    return fromBinary(etcdserverpb.AlarmRequestSchema, bytes).action !== GET;
  },
  '/v3lockpb.Lock/Lock': (bytes, { leases }) => {
    const { lease } = fromBinary(v3lockpb.LockRequestSchema, bytes);
    return lease === 0n || leases.has(lease);
  },
  '/v3lockpb.Lock/Unlock': (bytes, { keys }) => {
    return keys.has(Buffer.from(fromBinary(v3lockpb.UnlockRequestSchema, bytes).key).toString('latin1'));
  },
  '/v3electionpb.Election/Campaign': (bytes, { leases }) => {
    const { lease } = fromBinary(v3electionpb.CampaignRequestSchema, bytes);
    return lease === 0n || leases.has(lease);
  },
  // As in etcd, both may grant a lease, and a key that does not exist is written where its revision is given as 0.
  '/v3electionpb.Election/Proclaim': (bytes) =>
    fromBinary(v3electionpb.ProclaimRequestSchema, bytes).leader !== undefined,
  '/v3electionpb.Election/Resign': (bytes) => fromBinary(v3electionpb.ResignRequestSchema, bytes).leader !== undefined,
};

function putMayChange(put: etcdserverpb.PutRequest, { leases }: Existing): boolean {
  if (isPutRefused(put)) return false;
  return put.ignoreLease || put.lease === 0n || leases.has(put.lease);
}

function isPutRefused(put: etcdserverpb.PutRequest): boolean {
  if (put.key.length === 0) return true;
  return (put.ignoreValue && put.value.length > 0) || (put.ignoreLease && put.lease !== 0n);
}

function deleteMayChange({ key, rangeEnd }: etcdserverpb.DeleteRangeRequest, { keys }: Existing): boolean {
  if (key.length === 0) return false;
  return rangeEnd.length > 0 || keys.has(Buffer.from(key).toString('latin1'));
}

/** A transaction is refused because of any operation in its branches, even in one that would not run. */
function isRefused({ compare, success, failure }: etcdserverpb.TxnRequest): boolean {
  if ([compare, success, failure].some((list) => list.length > maxTxnOps)) return true;
  if (compare.some(({ key }) => key.length === 0)) return true;
  return [...success, ...failure].some(({ request }) => {
    switch (request.case) {
      case 'requestPut':
        return isPutRefused(request.value);
      case 'requestRange':
      case 'requestDeleteRange':
        return request.value.key.length === 0;
      case 'requestTxn':
        return isRefused(request.value);
      case undefined:
        return true;
    }
  });
}

function txnMayChange({ success, failure }: etcdserverpb.TxnRequest, existing: Existing): boolean {
  return [...success, ...failure].some(({ request }) => {
    if (request.case === 'requestPut') return true;
    if (request.case === 'requestDeleteRange') return deleteMayChange(request.value, existing);
    return request.case === 'requestTxn' && txnMayChange(request.value, existing);
  });
}
