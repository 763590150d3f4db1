import type { Position } from '../log-engine.ts';
import { decodeRecordHeader, recordHeaderBytes } from './segment-format.ts';

/** A write reaches the disk in units of this size: each unit as a whole or not at all. */
const sectorBytes = 512;

export type TailVerdict =
  /** Nothing was written here. */
  | { readonly kind: 'end' }
  /** An unfinished append, so it was never acknowledged. */
  | { readonly kind: 'torn'; readonly why: string }
  /** The bytes have changed after they were written, and may have been acknowledged. */
  | { readonly kind: 'damaged'; readonly why: string };

/**
 * Classifies the rest of a segment from `offset`, where reading stopped at position `end`, to the end of the file:
 * `rest`.
 *
 * An append begins only after the previous one is on the disk. So a crash can tear only the last record: a complete
 * record header *after* the bad place proves that the bad record was once complete and acknowledged. Without such proof
 * the bad record is the last. An unfinished write leaves the old content in the units that it did not reach, and the
 * old content is the end of the file or zeros, since a segment only ever grows into new zeros. Every header and payload
 * ends in bytes that are not zero. So a record whose units all hold data, including its end, was completely written,
 * and a mismatch in it is a later change: damage. One case cannot be distinguished: a last record, written since the
 * log was last opened or closed, that the disk acknowledged and then lost whole units of (or the end of the file). It
 * looks like a torn write and is treated as one.
 */
export function judgeTail(rest: Buffer, offset: number, marker: Buffer, end: Position): TailVerdict {
  const written = writtenBytes(rest);
  if (written === 0) return { kind: 'end' };
  const behind = findRecord(rest, marker, 1);
  if (behind !== undefined) {
    return {
      kind: 'damaged',
      why: `a whole record header follows ${behind} bytes later, so this is not the end of the log`,
    };
  }
  const header = decodeRecordHeader(rest, marker);
  if (header !== undefined && (header.before.index !== end.index || header.before.hash !== end.hash)) {
    return {
      kind: 'damaged',
      why: `the record here follows entry ${header.before.index} of a log, not entry ${end.index} of this`,
    };
  }
  const extent = header === undefined ? Math.max(written, recordHeaderBytes) : recordHeaderBytes + header.payloadBytes;
  if (extent > rest.length)
    return { kind: 'torn', why: `the file ends ${extent - rest.length} bytes before the record does` };
  if (rest[extent - 1] === 0 || hasUnwrittenSector(rest, extent, offset))
    return { kind: 'torn', why: 'parts of the record were never written' };
  return { kind: 'damaged', why: 'the record was written to its end and does not match its checksum' };
}

/** The offset of the first complete record header at or after `from`. */
function findRecord(bytes: Buffer, marker: Buffer, from: number): number | undefined {
  for (let at = bytes.indexOf(marker, from); at !== -1; at = bytes.indexOf(marker, at + 1)) {
    if (decodeRecordHeader(bytes.subarray(at, at + recordHeaderBytes), marker) !== undefined) return at;
  }
  return undefined;
}

function writtenBytes(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}

/**
 * Whether one of the disk units of the first `extent` bytes, `offset` bytes into the file, holds only zeros of them.
 */
function hasUnwrittenSector(bytes: Buffer, extent: number, offset: number): boolean {
  for (let at = 0; at < extent;) {
    const end = Math.min(extent, at + sectorBytes - ((offset + at) % sectorBytes));
    let zeros = at;
    while (zeros < end && bytes[zeros] === 0) zeros++;
    if (zeros === end) return true;
    at = end;
  }
  return false;
}
