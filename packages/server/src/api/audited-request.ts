import type { RequestOp, TxnRequest } from '@tenure/core';
import {
  decodeBoundedTxnRequest,
  decodeDeleteRangeRequest,
  decodeLeaseKeepAliveRequest,
  decodeLeaseRevokeRequest,
  decodeLeaseTimeToLiveRequest,
  decodeMessage,
  decodePutRequest,
  decodeRangeRequest,
  decodeWatchRequest,
  latin1FromBytes,
} from '@tenure/codec';
import { rpcMethods } from '@tenure/protocol';

/** What a request is about: the keys that it names, a lease, or the users and roles. Never a value or a password. */
export interface AuditedRequest {
  /** Each [key] or [from, end], as etcd writes them; bytes that are no UTF-8 are replaced, and long ones cut. */
  readonly keys?: readonly (readonly string[])[];
  /** The number of keys and ranges beyond the listed ones. */
  readonly moreKeys?: number;
  /** In hexadecimal. */
  readonly lease?: string;
  readonly user?: string;
  readonly role?: string;
}

interface KeyRange {
  readonly key: string;
  readonly rangeEnd: string;
}

/** The listed keys and ranges of one request. */
const maxKeys = 16;
/** Of all listed keys and ranges, as JSON, which writes one byte as up to six: more than one range can have. */
const maxKeysJsonBytes = 4_096;
/** The bytes of a listed key or name; of a longer one the beginning is listed, and its length. */
const maxTextBytes = 256;

/** Undefined for a request that is of no such kind, or cannot be read. */
export function auditedRequest(path: string, request: Buffer): AuditedRequest | undefined {
  try {
    return decoders[path]?.(request) ?? ofAuth(path, request) ?? ofQueue(path, request);
  } catch {
    // The request is refused as unreadable.
    return undefined;
  }
}

const decoders: Readonly<Record<string, (request: Buffer) => AuditedRequest>> = {
  '/etcdserverpb.KV/Range': (request) => auditedKeys([decodeRangeRequest(request)]),
  '/etcdserverpb.KV/Put': (request) => auditedKeys([{ key: decodePutRequest(request).key, rangeEnd: '' }]),
  '/etcdserverpb.KV/DeleteRange': (request) => auditedKeys([decodeDeleteRangeRequest(request)]),
  // One operation more than are listed is enough to know that there are more.
  '/etcdserverpb.KV/Txn': (request) => auditedKeys(rangesOf(decodeBoundedTxnRequest(request, Infinity))),
  '/etcdserverpb.Lease/LeaseRevoke': (request) => ofLease(decodeLeaseRevokeRequest(request)),
  '/etcdserverpb.Lease/LeaseKeepAlive': (request) => ofLease(decodeLeaseKeepAliveRequest(request)),
  '/etcdserverpb.Lease/LeaseTimeToLive': (request) => ofLease(decodeLeaseTimeToLiveRequest(request).id),
};

/** The range of a request for a watch; undefined for another message. */
export function watchedRange(message: Buffer): KeyRange | undefined {
  try {
    const request = decodeWatchRequest(message);
    return request.kind === 'create' ? request.create : undefined;
  } catch {
    return undefined;
  }
}

/** The Auth service: its messages call a user `user` or `name`, and a role `role` or `name`. */
function ofAuth(path: string, request: Buffer): AuditedRequest | undefined {
  const method = rpcMethods.get(path);
  if (method?.service !== 'etcdserverpb.Auth') return undefined;
  const fields = decodeMessage(method.descriptor.input, request) as {
    readonly name?: string;
    readonly user?: string;
    readonly role?: string;
    readonly perm?: { readonly key: Uint8Array; readonly rangeEnd: Uint8Array };
    readonly key?: Uint8Array;
    readonly rangeEnd?: Uint8Array;
  };
  const isOfRole = method.name.startsWith('Role');
  const user = fields.user ?? (isOfRole ? undefined : fields.name);
  const role = fields.role ?? (isOfRole ? fields.name : undefined);
  const { key, rangeEnd } = fields.perm ?? fields;
  return {
    ...(user === undefined ? {} : { user: text(Buffer.from(user)) }),
    ...(role === undefined ? {} : { role: text(Buffer.from(role)) }),
    ...(key === undefined
      ? {}
      : auditedKeys([{ key: latin1FromBytes(key), rangeEnd: latin1FromBytes(rangeEnd ?? new Uint8Array()) }])),
  };
}

/** Lock and Election: a name is that of a queue of keys below it, and a leader is a key. */
function ofQueue(path: string, request: Buffer): AuditedRequest | undefined {
  const method = rpcMethods.get(path);
  if (method?.service !== 'v3lockpb.Lock' && method?.service !== 'v3electionpb.Election') return undefined;
  const fields = decodeMessage(method.descriptor.input, request) as {
    readonly name?: Uint8Array;
    readonly key?: Uint8Array;
    readonly leader?: { readonly key: Uint8Array };
    readonly lease?: bigint;
  };
  const { name, lease } = fields;
  const key = fields.leader?.key ?? fields.key;
  const ranges = [
    ...(name === undefined ? [] : [{ key: `${latin1FromBytes(name)}/`, rangeEnd: `${latin1FromBytes(name)}0` }]),
    ...(key === undefined ? [] : [{ key: latin1FromBytes(key), rangeEnd: '' }]),
  ];
  return { ...auditedKeys(ranges), ...(lease === undefined || lease === 0n ? {} : ofLease(lease)) };
}

function rangesOf({ compare, success, failure }: TxnRequest): KeyRange[] {
  return [...compare, ...[...success, ...failure].flatMap(rangesOfOp)];
}

function rangesOfOp(op: RequestOp): KeyRange[] {
  switch (op.kind) {
    case 'range':
      return [op.range];
    case 'put':
      return [{ key: op.put.key, rangeEnd: '' }];
    case 'deleteRange':
      return [op.deleteRange];
    case 'txn':
      return rangesOf(op.txn);
    case 'empty':
      return [];
  }
}

export function auditedKeys(ranges: readonly KeyRange[]): AuditedRequest {
  const keys: string[][] = [];
  let jsonBytes = 0;
  for (const { key, rangeEnd } of ranges.slice(0, maxKeys)) {
    const texts = (rangeEnd === '' ? [key] : [key, rangeEnd]).map((each) => text(Buffer.from(each, 'latin1')));
    jsonBytes += Buffer.byteLength(JSON.stringify(texts));
    if (jsonBytes > maxKeysJsonBytes) break;
    keys.push(texts);
  }
  return keys.length < ranges.length ? { keys, moreKeys: ranges.length - keys.length } : { keys };
}

function ofLease(id: bigint): AuditedRequest {
  return { lease: BigInt.asUintN(64, id).toString(16) };
}

/** Clients without an identity are recorded too: their long keys must not fill the log, or delay other records. */
function text(bytes: Buffer): string {
  if (bytes.length <= maxTextBytes) return bytes.toString('utf8');
  return `${bytes.toString('utf8', 0, maxTextBytes)}... (${bytes.length} bytes)`;
}
