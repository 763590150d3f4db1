import type { Position } from '../log-engine.ts';
import type { FileSystem } from './file-system.ts';
import type { OpenFile } from './open-file.ts';
import { RecordReader } from './record-reader.ts';
import type { SegmentRecord } from './record-reader.ts';
import { decodeSegmentHeader, formatVersion, segmentHeaderBytes } from './segment-format.ts';
import type { RecordKind, SegmentHeader } from './segment-format.ts';
import { setSignpost } from './segment.ts';
import type { Segment } from './segment.ts';
import { judgeTail } from './tail-verdict.ts';
import type { TailVerdict } from './tail-verdict.ts';

export interface ScannedSegment extends Segment {
  readonly tail: TailVerdict;
  readonly lastRecord: { readonly kind: RecordKind; readonly offset: number } | undefined;
}

export type SegmentScan =
  | { readonly kind: 'scanned'; readonly segment: ScannedSegment }
  | { readonly kind: 'newer'; readonly version: number }
  | { readonly kind: 'no header' };

/**
 * Reads a whole segment and verifies every checksum and the running hash, without changing anything. `upTo` ends the
 * scan early, at that index, where the next segment begins. `onRecord` receives each valid record.
 */
export async function scanSegment(
  files: FileSystem,
  path: string,
  upTo: number,
  onRecord: (record: SegmentRecord) => void,
): Promise<SegmentScan> {
  const file = await files.open(path, 'r');
  try {
    const first = Buffer.alloc(segmentHeaderBytes);
    const read = await file.readFully(first, 0);
    const header = decodeSegmentHeader(first.subarray(0, read));
    if (header === undefined) return { kind: 'no header' };
    if (header.version !== formatVersion) return { kind: 'newer', version: header.version };
    return { kind: 'scanned', segment: await scanRecords(file, path, header, upTo, onRecord) };
  } finally {
    await file.close();
  }
}

async function scanRecords(
  file: OpenFile,
  path: string,
  header: SegmentHeader,
  upTo: number,
  onRecord: (record: SegmentRecord) => void,
): Promise<ScannedSegment> {
  const fileBytes = file.sizeBytes;
  const reader = new RecordReader(file, header.marker);
  const signposts: Segment['signposts'] = [];
  let end = header.before;
  let bytes = segmentHeaderBytes;
  let lastRecord: ScannedSegment['lastRecord'];
  for (;;) {
    const record = await reader.read(bytes, fileBytes);
    if (record === undefined || !samePosition(record.header.before, end)) break;
    if (record.header.kind !== 'sealed' && end.index >= upTo) break;
    setSignpost(signposts, end, bytes);
    onRecord(record);
    end = record.header.after;
    lastRecord = { kind: record.header.kind, offset: bytes };
    bytes = record.endOffset;
    if (record.header.kind === 'sealed') break;
  }
  const rest = Buffer.allocUnsafeSlow(fileBytes - bytes);
  const restBytes = await file.readFully(rest, bytes);
  const tail = judgeTail(rest.subarray(0, restBytes), bytes, header.marker, end);
  return { path, marker: header.marker, before: header.before, end, bytes, fileBytes, signposts, tail, lastRecord };
}

export function samePosition(one: Position, other: Position): boolean {
  return one.index === other.index && one.hash === other.hash;
}
