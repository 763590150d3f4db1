import type { Random } from '../../random/random.ts';
import { logStart } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { DamageError, logHelp, snapshotHelp } from './damage.ts';
import type { FileSystem } from './file-system.ts';
import type { OpenFile } from './open-file.ts';
import { scanFolder } from './folder-scan.ts';
import type { FolderScan, StoredSnapshotFile } from './folder-scan.ts';
import { decodePayload, decodeRecordHeader, recordHeaderBytes } from './segment-format.ts';
import { samePosition } from './segment-scan.ts';
import type { ScannedSegment } from './segment-scan.ts';
import { SegmentWriter } from './segment-writer.ts';
import type { SegmentLimits } from './segment-writer.ts';
import type { Segment } from './segment.ts';

export interface RecoveredLog {
  /** Ascending; the last one belongs to the writer. */
  readonly segments: Segment[];
  readonly writer: SegmentWriter;
  readonly snapshot: StoredSnapshotFile | undefined;
}

/**
 * Repairs a folder that this process holds after any kind of exit of the last process: refuses damage, truncates a torn
 * tail, removes incomplete files, and syncs again what may not have been synced. Idempotent.
 */
export async function recoverLog(
  files: FileSystem,
  folder: string,
  limits: SegmentLimits,
  { random, onNotice }: { readonly random: Random; readonly onNotice: (notice: string) => void },
): Promise<RecoveredLog> {
  const scan = await scanFolder(files, folder);
  refuseDamage(folder, scan);
  for (const path of scan.leftovers) await files.remove(path);
  const last = scan.segments.at(-1);
  const writer =
    last === undefined
      ? await SegmentWriter.create(files, { folder, before: logStart, limits, random })
      : await recoverTail(files, last, limits, onNotice);
  await files.syncFolder(folder);
  return { segments: [...scan.segments.slice(0, -1), writer.segment], writer, snapshot: scan.snapshot };
}

function refuseDamage(folder: string, scan: FolderScan): void {
  const first = scan.damage[0];
  if (first === undefined) return;
  throw new DamageError(first, first.in === 'log' ? logHelp(folder, scan.recoverableIndex) : snapshotHelp);
}

async function recoverTail(
  files: FileSystem,
  last: ScannedSegment,
  limits: SegmentLimits,
  onNotice: (notice: string) => void,
): Promise<SegmentWriter> {
  const { path, marker, before, end, bytes, signposts, lastRecord, tail } = last;
  const file = await files.open(path, 'r+');
  let { fileBytes } = last;
  if (tail.kind === 'torn') {
    onNotice(tornNotice(path, bytes, fileBytes, end, tail.why));
    await file.truncate(bytes);
    fileBytes = bytes;
  }
  const writer = new SegmentWriter({ path, marker, before, end, bytes, fileBytes, signposts }, file, limits);
  // The last record may be a mark whose sync failed: it must be on the disk before a record follows it.
  if (lastRecord === undefined) await file.syncData();
  else await rewrite(file, last, lastRecord.offset);
  if (lastRecord?.kind === 'batch') await writer.mark('synced');
  return writer;
}

/**
 * Rewrites the last record in place and syncs it. After a failed sync the kernel may count pages as clean whose bytes
 * never reached the disk, and would report success for another sync; rewritten pages are dirty again. The bytes are
 * verified again: a disk that returns other bytes this time would make its error permanent.
 */
async function rewrite(file: OpenFile, { path, marker, end, bytes: to }: Segment, from: number): Promise<void> {
  const bytes = Buffer.allocUnsafeSlow(to - from);
  const read = await file.readFully(bytes, from);
  const header = read < bytes.length ? undefined : decodeRecordHeader(bytes, marker);
  const entries = header && decodePayload(header, bytes.subarray(recordHeaderBytes), marker);
  if (header === undefined || entries === undefined || !samePosition(header.after, end)) {
    throw new EngineError('damaged', `${path} has changed at offset ${from} while it was read`);
  }
  await file.writeFully(bytes, bytes.length, from);
  await file.syncData();
}

function tornNotice(path: string, offset: number, fileBytes: number, end: Position, why: string): string {
  return (
    `${path}: cut off ${fileBytes - offset} bytes at offset ${offset}, an append behind entry ${end.index} ` +
    `that was begun and never acknowledged (${why})`
  );
}
