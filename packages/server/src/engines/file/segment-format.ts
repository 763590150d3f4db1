import type { Random } from '../../random/random.ts';
import { crc32 } from 'node:zlib';
import { chainHash } from '../chain-hash.ts';
import type { LoggedEntry, Position } from '../log-engine.ts';

/**
 * The bytes of a segment: a header of 64 bytes, then records, then zeros (preallocated room) up to its
 * end.
 *
 *     segment header:  magic 8 | version u32 | marker 8 | index before u48 | hash before 16 | CRC-32 of these | zeros
 *     record header:   marker 8 | kind u8 | entries u32 | payload bytes u32 | index before u48 | hash before 16
 *                      | hash after 16 | CRC-32 of these | zeros | end byte; 64 bytes
 *     payload:         length u32 of each entry | the entries | the first 4 bytes of the marker
 *
 * Numbers are little-endian. The marker is random for each segment, so that no client can store a value that looks like
 * a record in a search of a damaged segment. A record is one append, so it is present as a whole or not at all: the
 * running hash after its last entry is in its header, and covers the entries and their boundaries. Every header and
 * payload ends in bytes that are not zero, which distinguishes "was not completely written" from "was written and
 * changed since" (see tail-verdict.ts).
 */
export const segmentHeaderBytes = 64;
export const recordHeaderBytes = 64;
export const formatVersion = 1;

const magic = Buffer.from('TENURLOG', 'latin1');
const markerBytes = 8;
const trailerBytes = 4;
const endByte = 0xa5;

/**
 * `batch`: entries. `synced`: everything before it was on the disk when it was written. `sealed`: the log continues in
 * another file.
 */
export type RecordKind = 'batch' | 'synced' | 'sealed';
const kinds: readonly (RecordKind | undefined)[] = [undefined, 'batch', 'synced', 'sealed'];

export interface SegmentHeader {
  readonly version: number;
  readonly marker: Buffer;
  readonly before: Position;
}

export interface RecordHeader {
  readonly kind: RecordKind;
  readonly entries: number;
  readonly payloadBytes: number;
  readonly before: Position;
  readonly after: Position;
}

export function newMarker(random: Random): Buffer {
  // At least two bits in each byte: one flipped bit cannot make it zero.
  return Buffer.from(random.bytes(markerBytes).map((byte) => byte | 0x21));
}

export function encodeSegmentHeader(marker: Buffer, before: Position): Buffer {
  const header = Buffer.alloc(segmentHeaderBytes);
  magic.copy(header, 0);
  header.writeUInt32LE(formatVersion, 8);
  marker.copy(header, 12);
  writePosition(header, before, 20);
  header.writeUInt32LE(crc32(header.subarray(0, 42)), 42);
  return header;
}

/**
 * Undefined if these are not the first bytes of a segment. Other versions keep magic, version and checksum at the same
 * place.
 */
export function decodeSegmentHeader(bytes: Buffer): SegmentHeader | undefined {
  if (bytes.length < segmentHeaderBytes || !bytes.subarray(0, 8).equals(magic)) return undefined;
  const version = bytes.readUInt32LE(8);
  if (bytes.readUInt32LE(42) !== crc32(bytes.subarray(0, 42))) return undefined;
  return { version, marker: Buffer.from(bytes.subarray(12, 12 + markerBytes)), before: readPosition(bytes, 20) };
}

export function payloadBytesOf(batch: readonly Uint8Array[]): number {
  let bytes = batch.length * 4 + trailerBytes;
  for (const entry of batch) bytes += entry.length;
  return bytes;
}

/**
 * Writes the record for `batch` to the start of `target`, which is large enough. Returns the position after the batch.
 */
export function encodeBatch(target: Buffer, marker: Buffer, batch: readonly Uint8Array[], before: Position): Position {
  let hash = before.hash;
  let lengthAt = recordHeaderBytes;
  let entryAt = recordHeaderBytes + batch.length * 4;
  for (const entry of batch) {
    hash = chainHash(hash, entry);
    target.writeUInt32LE(entry.length, lengthAt);
    target.set(entry, entryAt);
    lengthAt += 4;
    entryAt += entry.length;
  }
  marker.copy(target, entryAt, 0, trailerBytes);
  const after = { index: before.index + batch.length, hash };
  const payloadBytes = entryAt + trailerBytes - recordHeaderBytes;
  writeRecordHeader(target, marker, { kind: 'batch', entries: batch.length, payloadBytes, before, after });
  return after;
}

/** A record that holds no entry. */
export function encodeMark(kind: 'synced' | 'sealed', marker: Buffer, at: Position): Buffer {
  const record = Buffer.alloc(recordHeaderBytes);
  writeRecordHeader(record, marker, { kind, entries: 0, payloadBytes: 0, before: at, after: at });
  return record;
}

function writeRecordHeader(target: Buffer, marker: Buffer, header: RecordHeader): void {
  marker.copy(target, 0);
  target[8] = kinds.indexOf(header.kind);
  target.writeUInt32LE(header.entries, 9);
  target.writeUInt32LE(header.payloadBytes, 13);
  writePosition(target, header.before, 17);
  target.write(header.after.hash, 39, 'hex');
  target.writeUInt32LE(crc32(target.subarray(0, 55)), 55);
  target.fill(0, 59, 63);
  target[63] = endByte;
}

/** The record header in the first bytes of `bytes`, or undefined if there is no complete one. */
export function decodeRecordHeader(bytes: Buffer, marker: Buffer): RecordHeader | undefined {
  if (bytes.length < recordHeaderBytes || marker.compare(bytes, 0, markerBytes) !== 0) return undefined;
  if (bytes.readUInt32LE(55) !== crc32(bytes.subarray(0, 55))) return undefined;
  if (bytes.readUInt32LE(59) !== 0 || bytes[63] !== endByte) return undefined;
  const kind = kinds[bytes[8]!];
  const before = readPosition(bytes, 17);
  const entries = bytes.readUInt32LE(9);
  if (kind === undefined) return undefined;
  const after = { index: before.index + entries, hash: bytes.toString('hex', 39, 55) };
  return { kind, entries, payloadBytes: bytes.readUInt32LE(13), before, after };
}

/** The entries of a payload, as views of it; undefined if they do not match the header. */
export function decodePayload(header: RecordHeader, payload: Buffer, marker: Buffer): LoggedEntry[] | undefined {
  if (header.kind !== 'batch') return payload.length === 0 && header.after.hash === header.before.hash ? [] : undefined;
  let entryAt = header.entries * 4;
  const end = payload.length - trailerBytes;
  if (entryAt > end || marker.compare(payload, end, payload.length, 0, trailerBytes) !== 0) return undefined;
  const entries: LoggedEntry[] = [];
  let { index, hash } = header.before;
  for (let lengthAt = 0; lengthAt < header.entries * 4; lengthAt += 4) {
    const length = payload.readUInt32LE(lengthAt);
    if (length > end - entryAt) return undefined;
    const bytes = payload.subarray(entryAt, entryAt + length);
    hash = chainHash(hash, bytes);
    entries.push({ position: { index: ++index, hash }, bytes });
    entryAt += length;
  }
  return entryAt === end && hash === header.after.hash ? entries : undefined;
}

function writePosition(target: Buffer, position: Position, at: number): void {
  target.writeUIntLE(position.index, at, 6);
  target.write(position.hash, at + 6, 'hex');
}

function readPosition(bytes: Buffer, at: number): Position {
  return { index: bytes.readUIntLE(at, 6), hash: bytes.toString('hex', at + 6, at + 22) };
}
