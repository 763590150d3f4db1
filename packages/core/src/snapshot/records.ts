import { AuthState } from '../auth/auth-state.ts';
import type { Lease } from '../lease/lease-types.ts';
import type { KeyValue } from '../mvcc/kv-types.ts';
import { isTombstone, tombstone } from '../mvcc/key-entry.ts';
import type { Alarm, ClusterState, Member } from '../state-machine/cluster-state.ts';
import { type ByteReader, readList } from './byte-reader.ts';
import { readAuth, writeAuth } from './auth-record.ts';
import type { ByteWriter } from './byte-writer.ts';

/** The one record of the cluster block. */
export interface ClusterRecord {
  readonly cluster: ClusterState;
  readonly epochEnds: readonly (readonly [number, number])[];
  readonly compactRevision: number;
  readonly currentRevision: number;
  /** The rolling hash of the oldest held revision; the later hashes follow from their events. */
  readonly oldestHash: number;
}

/** The one record of the end block. */
export interface EndRecord {
  readonly leases: number;
  readonly baseKeys: number;
  readonly events: number;
  readonly currentHash: number;
}

const flagTombstone = 1;
const flagLease = 2;

/** modRevision only where the position in the stream does not imply it. */
export function writeVersion(out: ByteWriter, version: KeyValue): void {
  const dead = isTombstone(version);
  out.byte((dead ? flagTombstone : 0) | (version.lease === 0n ? 0 : flagLease));
  out.latin1(version.key);
  if (dead) return;
  out.varint(version.createRevision);
  out.varint(version.version);
  if (version.lease !== 0n) out.int64(version.lease);
  out.latin1(version.value);
}

export function readVersion(input: ByteReader, modRevision: number): KeyValue {
  const flags = input.byte();
  const key = input.latin1();
  if ((flags & flagTombstone) !== 0) return tombstone(key, modRevision);
  const createRevision = input.varint();
  const version = input.varint();
  const lease = (flags & flagLease) === 0 ? 0n : input.int64();
  return { key, value: input.latin1(), createRevision, modRevision, version, lease };
}

export function writeLease(out: ByteWriter, lease: Lease): void {
  out.byte(lease.deadlineMs === undefined ? 0 : 1);
  out.int64(lease.id);
  out.float64(lease.ttlMs);
  out.text(lease.label);
  out.varint(lease.renewIndex);
  out.varint(lease.liveEpoch);
  if (lease.deadlineMs !== undefined) out.float64(lease.deadlineMs);
}

export function readLease(input: ByteReader): Lease {
  const isCheckpointed = input.byte() === 1;
  return {
    id: input.int64(),
    ttlMs: input.float64(),
    label: input.text(),
    renewIndex: input.varint(),
    liveEpoch: input.varint(),
    deadlineMs: isCheckpointed ? input.float64() : undefined,
  };
}

export function writeCluster(out: ByteWriter, record: ClusterRecord): void {
  const { cluster } = record;
  out.int64(cluster.clusterId);
  out.text(cluster.secret);
  out.varint(cluster.epoch);
  out.text(cluster.leader);
  out.float64(cluster.leaderLeaseMs);
  out.int64(cluster.successor);
  out.float64(cluster.clusterTimeMs);
  out.varint(cluster.appliedIndex);
  out.varint(cluster.members.length);
  for (const member of cluster.members) writeMember(out, member);
  out.varint(cluster.alarms.length);
  for (const { memberId, alarm } of cluster.alarms) {
    out.int64(memberId);
    out.byte(alarm === 'nospace' ? 1 : 2);
  }
  out.varint(record.epochEnds.length);
  for (const [epoch, timeMs] of record.epochEnds) {
    out.varint(epoch);
    out.float64(timeMs);
  }
  // -1 means that the store has never been compacted.
  out.varint(record.compactRevision + 1);
  out.varint(record.currentRevision);
  out.uint32(record.oldestHash);
  const { txnLimits, auth, members } = cluster;
  const hasPeerUrls = members.some(({ peerUrls }) => peerUrls !== undefined);
  const hasAuth = hasPeerUrls || auth.revision > AuthState.initial.revision;
  if (txnLimits === undefined && !hasAuth) return;
  out.varint(txnLimits?.maxRows ?? 0);
  out.varint(txnLimits?.maxReplyBytes ?? 0);
  out.varint(txnLimits?.maxComparedBytes ?? 0);
  if (hasAuth) writeAuth(out, auth);
  if (hasPeerUrls) for (const { peerUrls = [] } of members) writeTexts(out, peerUrls);
}

export function readCluster(input: ByteReader): ClusterRecord {
  const cluster: ClusterState = {
    clusterId: input.uint64(),
    secret: input.text(),
    epoch: input.varint(),
    leader: input.text(),
    leaderLeaseMs: input.float64(),
    successor: input.uint64(),
    clusterTimeMs: input.float64(),
    appliedIndex: input.varint(),
    members: readList(input, readMember),
    alarms: readList(input, readAlarm),
    txnLimits: undefined,
    auth: AuthState.initial,
  };
  const record: ClusterRecord = {
    cluster,
    epochEnds: readList(input, (): [number, number] => [input.varint(), input.float64()]),
    compactRevision: input.varint() - 1,
    currentRevision: input.varint(),
    oldestHash: input.uint32(),
  };
  // A snapshot of format 1 ends here: its log has no limits.
  if (!input.atEnd) {
    const limits = { maxRows: input.varint(), maxReplyBytes: input.varint(), maxComparedBytes: input.varint() };
    if (limits.maxRows > 0) cluster.txnLimits = limits;
  }
  if (!input.atEnd) cluster.auth = readAuth(input);
  if (!input.atEnd) cluster.members = cluster.members.map((member) => withPeerUrls(member, readTexts(input)));
  return record;
}

function writeMember(out: ByteWriter, member: Member): void {
  out.int64(member.id);
  out.text(member.name);
  writeTexts(out, member.clientUrls);
}

function writeTexts(out: ByteWriter, texts: readonly string[]): void {
  out.varint(texts.length);
  for (const text of texts) out.text(text);
}

function readTexts(input: ByteReader): readonly string[] {
  return readList(input, () => input.text());
}

function withPeerUrls(member: Member, peerUrls: readonly string[]): Member {
  return peerUrls.length === 0 ? member : { ...member, peerUrls };
}

function readMember(input: ByteReader): Member {
  return { id: input.uint64(), name: input.text(), clientUrls: readTexts(input) };
}

function readAlarm(input: ByteReader): Alarm {
  return { memberId: input.uint64(), alarm: input.byte() === 1 ? 'nospace' : 'corrupt' };
}

export function writeEnd(out: ByteWriter, record: EndRecord): void {
  out.varint(record.leases);
  out.varint(record.baseKeys);
  out.varint(record.events);
  out.uint32(record.currentHash);
}

export function readEnd(input: ByteReader): EndRecord {
  return {
    leases: input.varint(),
    baseKeys: input.varint(),
    events: input.varint(),
    currentHash: input.uint32(),
  };
}
