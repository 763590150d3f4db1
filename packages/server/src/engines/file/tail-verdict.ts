import type { Position } from '../log-engine.ts';
import { decodeRecordHeader, recordHeaderBytes } from './segment-format.ts';

/** A write reaches the disk in units of this many bytes: of each unit, all or nothing. */
const sectorBytes = 512;

export type TailVerdict =
  /** Nothing was written here. */
  | { readonly kind: 'end' }
  /** An append was begun here and did not finish, so that it was never acknowledged. */
  | { readonly kind: 'torn'; readonly why: string }
  /** What was written here has changed since, and it may have been acknowledged. */
  | { readonly kind: 'damaged'; readonly why: string };

/**
 * Judges what lies in a segment from `offset`, where reading stopped at position `end`, to the end of the file:
 * `rest`.
 *
 * An append begins only after the one before it is on the disk. So a crash can tear the last record alone: a whole
 * header of a record *behind* the bad place proves that the bad one was once whole and acknowledged. Without such
 * proof the bad record is the last. A write that did not finish leaves the old content in the units that it did not
 * reach, and the old content is the end of the file or zeros, since a segment only ever grows into fresh zeros. Every
 * header and payload ends in bytes that are not zero. So a record of which every unit holds something, its end too,
 * had been written, and what does not fit in it changed later: damage. What remains beyond telling is a last record,
 * written since the log was last opened or closed, that the disk acknowledged and of which it lost whole units (or
 * the file its end): it looks like a torn write and is treated as one.
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

/** The offset of the first whole record header at or after `from`. */
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
 * Whether one of the disk's units that the first `extent` bytes lie in, `offset` bytes into the file, holds only
 * zeros of them.
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
