import { bytesOf, MessageWriter, readFields, varintOf } from './protobuf.ts';

/** The requests of the benchmarks, with the field numbers of etcd's v3 API. */
export const methods = {
  put: '/etcdserverpb.KV/Put',
  range: '/etcdserverpb.KV/Range',
  txn: '/etcdserverpb.KV/Txn',
  watch: '/etcdserverpb.Watch/Watch',
  leaseGrant: '/etcdserverpb.Lease/LeaseGrant',
  leaseKeepAlive: '/etcdserverpb.Lease/LeaseKeepAlive',
  leaseLeases: '/etcdserverpb.Lease/LeaseLeases',
  snapshot: '/etcdserverpb.Maintenance/Snapshot',
  status: '/etcdserverpb.Maintenance/Status',
} as const;

export function putRequest(key: string, value: string, lease = 0): Buffer {
  return new MessageWriter().bytes(1, key).bytes(2, value).varint(3, lease).finish();
}

export interface RangeOptions {
  readonly rangeEnd?: string;
  readonly limit?: number;
  /** 1 ascending, 2 descending. */
  readonly sortOrder?: number;
  /** 0 key, 1 version, 2 create, 3 mod, 4 value. */
  readonly sortTarget?: number;
  readonly countOnly?: boolean;
  readonly serializable?: boolean;
}

export function rangeRequest(key: string, options: RangeOptions = {}): Buffer {
  const { rangeEnd, limit = 0, sortOrder = 0, sortTarget = 0, countOnly = false, serializable = false } = options;
  const writer = new MessageWriter().bytes(1, key);
  if (rangeEnd !== undefined) writer.bytes(2, rangeEnd);
  writer
    .varint(3, limit)
    .varint(5, sortOrder)
    .varint(6, sortTarget)
    .varint(7, serializable ? 1 : 0);
  return writer.varint(9, countOnly ? 1 : 0).finish();
}

/** A transaction that reads a range and puts a key. */
export function readAndPutRequest(range: Buffer, put: Buffer): Buffer {
  return new MessageWriter().bytes(2, requestOp(1, range)).bytes(2, requestOp(2, put)).finish();
}

/** A transaction of puts. */
export function putsRequest(puts: readonly Buffer[]): Buffer {
  const writer = new MessageWriter();
  for (const put of puts) writer.bytes(2, requestOp(2, put));
  return writer.finish();
}

/** Puts if the key was last changed at `modRevision` (0: does not exist), and reads it otherwise. */
export function compareAndSwapRequest(key: string, put: Buffer, modRevision: number): Buffer {
  // That it is equal is the default; the target is the revision of the last change.
  const compare = new MessageWriter().varint(2, 2).bytes(3, key).varint(6, modRevision).finish();
  return new MessageWriter()
    .bytes(1, compare)
    .bytes(2, requestOp(2, put))
    .bytes(3, requestOp(1, rangeRequest(key)))
    .finish();
}

/** Whether it swapped, and the revision of the last change of the key after it. */
export function compareAndSwapReply(reply: Buffer): { swapped: boolean; modRevision: number } {
  if (varintOf(reply, 2) === 1) return { swapped: true, modRevision: revisionOf(reply) };
  const range = bytesOf(bytesOf(reply, 3), 1);
  return { swapped: false, modRevision: varintOf(bytesOf(range, 2), 3) };
}

/** The versions of the keys in a reply to Range: how often each was put. */
export function versionsOf(rangeReply: Buffer): readonly number[] {
  const keys = [...readFields(rangeReply)].filter(({ number }) => number === 2);
  return keys.map(({ bytes }) => varintOf(bytes, 4));
}

function requestOp(number: number, request: Buffer): Buffer {
  return new MessageWriter().bytes(number, request).finish();
}

export function leaseGrantRequest(ttlSeconds: number, id = 0): Buffer {
  return new MessageWriter().varint(1, ttlSeconds).varint(2, id).finish();
}

/** Without an end of the range it watches one key. */
export function watchCreateRequest(key: string, rangeEnd?: string): Buffer {
  const watch = new MessageWriter().bytes(1, key);
  if (rangeEnd !== undefined) watch.bytes(2, rangeEnd);
  return new MessageWriter().bytes(1, watch.finish()).finish();
}

/** The revision in the header of any reply. */
export function revisionOf(reply: Buffer): number {
  return varintOf(bytesOf(reply, 1), 3);
}

/** The responding member, the leader it reports (0: none), and the term, from a reply to Status. */
export function statusOf(reply: Buffer): { member: bigint; leader: bigint; term: number } {
  const found = { member: 0n, leader: 0n, term: varintOf(reply, 6) };
  for (const field of readFields(bytesOf(reply, 1))) if (field.number === 2) found.member = field.varint;
  for (const field of readFields(reply)) if (field.number === 4) found.leader = field.varint;
  return found;
}

export function rangeCountOf(reply: Buffer): number {
  return varintOf(reply, 4);
}

export function leaseCountOf(leasesReply: Buffer): number {
  let count = 0;
  for (const field of readFields(leasesReply)) if (field.number === 2) count += 1;
  return count;
}

/**
 * ID and TTL of a reply to a grant, a renewal or a TimeToLive: all three use the same field numbers. Decoded by hand,
 * since a slow client would hide how fast a server renews; ids here are chosen small.
 */
export function leaseReply(reply: Buffer): { id: number; ttlSeconds: number } {
  const found = { id: 0, ttlSeconds: 0 };
  visitFields(reply, (tag, value) => {
    if (tag === 16) found.id = value;
    else if (tag === 24) found.ttlSeconds = value;
  });
  return found;
}

/** What a message of a watch is, without its events: decoded by hand too, since ten thousand come at once. */
export function watchHead(reply: Buffer): { watchId: number; created: boolean; canceled: boolean; events: number } {
  const found = { watchId: 0, created: false, canceled: false, events: 0 };
  visitFields(reply, (tag, value) => {
    if (tag === 16) found.watchId = value;
    else if (tag === 24) found.created = value === 1;
    else if (tag === 32) found.canceled = value === 1;
    else if (tag === 90) found.events += 1;
  });
  return found;
}

/** Calls back with the tag and the number of each field, or the length of one with content. */
function visitFields(message: Buffer, visit: (tag: number, value: number) => void): void {
  let at = 0;
  const readVarint = (): number => {
    let value = 0;
    for (let factor = 1; at < message.length; factor *= 128) {
      const byte = message[at++] ?? 0;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new Error('a reply ends inside a number');
  };
  while (at < message.length) {
    const tag = readVarint();
    const value = readVarint();
    if ((tag & 7) === 2) at += value;
    visit(tag, value);
  }
}

export interface WatchReply {
  readonly created: boolean;
  readonly canceled: boolean;
  readonly putKeys: readonly string[];
  readonly deletedKeys: readonly string[];
}

/** One message of a watch: whether it confirms the watch, and the keys that were put and deleted. */
export function watchReply(reply: Buffer): WatchReply {
  let created = false;
  let canceled = false;
  const putKeys: string[] = [];
  const deletedKeys: string[] = [];
  for (const field of readFields(reply)) {
    if (field.number === 3) created = field.varint === 1n;
    if (field.number === 4) canceled = field.varint === 1n;
    if (field.number !== 11) continue;
    const keys = varintOf(field.bytes, 1) === 1 ? deletedKeys : putKeys;
    keys.push(bytesOf(bytesOf(field.bytes, 2), 1).toString('latin1'));
  }
  return { created, canceled, putKeys, deletedKeys };
}
