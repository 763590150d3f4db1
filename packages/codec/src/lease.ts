import { allocateFrame, frameHeadroomBytes } from './frame.ts';
import { writeLatin1 } from './latin1.ts';
import { type ResponseHeader, headerFieldSize, writeHeaderField } from './response-header.ts';
import type { ListMessage } from './sliced-reply.ts';
import { WireReader } from './wire-reader.ts';
import {
  bigIntFieldSize,
  boolFieldSize,
  delimitedSize,
  numberFieldSize,
  utf8FieldSize,
  writeBigIntField,
  writeBoolField,
  writeDelimiter,
  writeNumberField,
  writeUtf8Field,
} from './wire-write.ts';

const ttlMsField = 1001;
const labelField = 1003;
const ttlRaisedField = 1004;
const ttlMsTag = ttlMsField << 3;
const grantedTtlMsTag = 1002 << 3;
const labelTag = (labelField << 3) | 2;
const ttlRaisedTag = ttlRaisedField << 3;
/** The tags of fields from 16 to 2047 have two bytes. */
const extensionTagSize = 2;

const leaseIdFields = [1];
const timeToLiveFields = [1, 2];
const grantFields = [1, 2, ttlMsField, labelField];

export interface LeaseGrantRequest {
  /** 0n: the server chooses. */
  readonly id: bigint;
  readonly ttlSeconds: number;
  /** Takes precedence over `ttlSeconds` when it is not 0. */
  readonly ttlMs: number;
  readonly label: string;
}

export interface LeaseGrantResult {
  readonly id: bigint;
  /** The granted TTL; the reply's whole seconds round it up. */
  readonly ttlMs: number;
  /** The requested TTL was below the minimum. */
  readonly ttlRaised: boolean;
}

export interface LeaseKeepAliveResult {
  readonly id: bigint;
  /** The TTL that starts now; 0 when the lease does not exist. */
  readonly ttlMs: number;
}

/** Seconds for etcd's clients: 0 means that the lease does not exist, so a fraction of a second counts as one. */
function wholeSeconds(ttlMs: number): number {
  return Math.ceil(ttlMs / 1000);
}

/** Throws DecodeError. */
export function decodeLeaseGrantRequest(bytes: Buffer): LeaseGrantRequest {
  const reader = new WireReader(bytes);
  let id = 0n;
  let ttlSeconds = 0;
  let ttlMs = 0;
  let label = '';
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === 0x08) ttlSeconds = reader.int64();
    else if (tag === 0x10) id = reader.bigInt64();
    else if (tag === ttlMsTag) ttlMs = reader.int64();
    else if (tag === labelTag) label = reader.utf8();
    else reader.skipUnknown(tag, grantFields);
  }
  return { id, ttlSeconds, ttlMs, label };
}

/** After the headroom, ready to be framed. */
export function encodeLeaseGrantRequest(request: LeaseGrantRequest): Buffer {
  const out = allocateFrame(
    numberFieldSize(1, request.ttlSeconds) +
      bigIntFieldSize(1, request.id) +
      numberFieldSize(extensionTagSize, request.ttlMs) +
      utf8FieldSize(extensionTagSize, request.label),
  );
  let at = writeNumberField(out, frameHeadroomBytes, 0x08, request.ttlSeconds);
  at = writeBigIntField(out, at, 0x10, request.id);
  at = writeNumberField(out, at, ttlMsTag, request.ttlMs);
  writeUtf8Field(out, at, labelTag, request.label);
  return out;
}

/** After the headroom, ready to be framed. */
export function encodeLeaseGrantResponse(header: ResponseHeader, result: LeaseGrantResult): Buffer {
  const seconds = wholeSeconds(result.ttlMs);
  const out = allocateFrame(
    headerFieldSize(header) +
      bigIntFieldSize(1, result.id) +
      numberFieldSize(1, seconds) +
      numberFieldSize(extensionTagSize, result.ttlMs) +
      boolFieldSize(extensionTagSize, result.ttlRaised),
  );
  let at = writeHeaderField(out, frameHeadroomBytes, header);
  at = writeBigIntField(out, at, 0x10, result.id);
  at = writeNumberField(out, at, 0x18, seconds);
  at = writeNumberField(out, at, ttlMsTag, result.ttlMs);
  writeBoolField(out, at, ttlRaisedTag, result.ttlRaised);
  return out;
}

/** Reads a message whose only field, besides an optional flag, is the id of a lease. */
function decodeLeaseId(bytes: Buffer, flagTag: number, known: readonly number[]): { id: bigint; flag: boolean } {
  const reader = new WireReader(bytes);
  let id = 0n;
  let flag = false;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === 0x08) id = reader.bigInt64();
    else if (tag === flagTag) flag = reader.bool();
    else reader.skipUnknown(tag, known);
  }
  return { id, flag };
}

/** No tag is negative. */
const noFlag = -1;

/** Returns the lease's id. Throws DecodeError. */
export function decodeLeaseKeepAliveRequest(bytes: Buffer): bigint {
  return decodeLeaseId(bytes, noFlag, leaseIdFields).id;
}

/** Returns the lease's id. Throws DecodeError. */
export function decodeLeaseRevokeRequest(bytes: Buffer): bigint {
  return decodeLeaseId(bytes, noFlag, leaseIdFields).id;
}

/** Throws DecodeError. */
export function decodeLeaseTimeToLiveRequest(bytes: Buffer): { readonly id: bigint; readonly keys: boolean } {
  const { id, flag } = decodeLeaseId(bytes, 0x10, timeToLiveFields);
  return { id, keys: flag };
}

/** After the headroom, ready to be framed. */
export function encodeLeaseKeepAliveRequest(id: bigint): Buffer {
  const out = allocateFrame(bigIntFieldSize(1, id));
  writeBigIntField(out, frameHeadroomBytes, 0x08, id);
  return out;
}

/** After the headroom, ready to be framed. */
export function encodeLeaseKeepAliveResponse(header: ResponseHeader, result: LeaseKeepAliveResult): Buffer {
  const seconds = wholeSeconds(result.ttlMs);
  const out = allocateFrame(
    headerFieldSize(header) +
      bigIntFieldSize(1, result.id) +
      numberFieldSize(1, seconds) +
      numberFieldSize(extensionTagSize, result.ttlMs),
  );
  let at = writeHeaderField(out, frameHeadroomBytes, header);
  at = writeBigIntField(out, at, 0x10, result.id);
  at = writeNumberField(out, at, 0x18, seconds);
  writeNumberField(out, at, ttlMsTag, result.ttlMs);
  return out;
}

export interface ListedLease {
  readonly id: bigint;
  /** The remaining TTL, 1 at least; the granted TTL; and the label. All 0 and '' when no details are requested. */
  readonly remainingMs: number;
  readonly grantedMs: number;
  readonly label: string;
}

function listedLeaseSize(lease: ListedLease): number {
  return (
    bigIntFieldSize(1, lease.id) +
    numberFieldSize(extensionTagSize, lease.remainingMs) +
    numberFieldSize(extensionTagSize, lease.grantedMs) +
    utf8FieldSize(extensionTagSize, lease.label)
  );
}

/** The reply to LeaseLeases, to be written in slices: the leases at these places. */
export function leaseListReply(
  header: ResponseHeader,
  places: readonly number[],
  leaseAt: (place: number) => ListedLease,
): ListMessage<number> {
  return {
    items: places,
    itemSize: (place) => delimitedSize(1, listedLeaseSize(leaseAt(place))),
    writeItem: (out, at, place) => {
      const lease = leaseAt(place);
      at = writeDelimiter(out, at, 0x12, listedLeaseSize(lease));
      at = writeBigIntField(out, at, 0x08, lease.id);
      at = writeNumberField(out, at, ttlMsTag, lease.remainingMs);
      at = writeNumberField(out, at, grantedTtlMsTag, lease.grantedMs);
      return writeUtf8Field(out, at, labelTag, lease.label);
    },
    headSize: headerFieldSize(header),
    tailSize: 0,
    writeHead: (out, at) => writeHeaderField(out, at, header),
    writeTail: (_out, at) => at,
  };
}

export interface TimeToLive {
  readonly id: bigint;
  /** The remaining whole seconds; -1 for a lease that does not exist, with only the id. */
  readonly ttlSeconds: number;
  readonly ttlMs: number;
  readonly grantedMs: number;
  readonly label: string;
}

/** The reply to LeaseTimeToLive with `keys`, one char per byte, to be written in slices. */
export function timeToLiveReplyList(
  header: ResponseHeader,
  lease: TimeToLive,
  keys: readonly string[],
): ListMessage<string> {
  const grantedSeconds = wholeSeconds(lease.grantedMs);
  return {
    items: keys,
    itemSize: (key) => delimitedSize(1, key.length),
    writeItem: (out, at, key) => writeLatin1(out, writeDelimiter(out, at, 0x2a, key.length), key),
    headSize:
      headerFieldSize(header) +
      bigIntFieldSize(1, lease.id) +
      numberFieldSize(1, lease.ttlSeconds) +
      numberFieldSize(1, grantedSeconds),
    tailSize:
      numberFieldSize(extensionTagSize, lease.ttlMs) +
      numberFieldSize(extensionTagSize, lease.grantedMs) +
      utf8FieldSize(extensionTagSize, lease.label),
    writeHead: (out, at) => {
      at = writeBigIntField(out, writeHeaderField(out, at, header), 0x10, lease.id);
      return writeNumberField(out, writeNumberField(out, at, 0x18, lease.ttlSeconds), 0x20, grantedSeconds);
    },
    writeTail: (out, at) => {
      at = writeNumberField(out, at, ttlMsTag, lease.ttlMs);
      return writeUtf8Field(out, writeNumberField(out, at, grantedTtlMsTag, lease.grantedMs), labelTag, lease.label);
    },
  };
}
