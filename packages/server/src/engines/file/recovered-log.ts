import { rm } from 'node:fs/promises';
import type { Random } from '../../random/random.ts';
import { logStart } from '../chain-hash.ts';
import type { Position } from '../log-engine.ts';
import { DamageError, logHelp, snapshotHelp } from './damage.ts';
import { openFile, readFully, syncData, syncFolder, truncateFile, writeFully } from './file-system.ts';
import { scanFolder } from './folder-scan.ts';
import type { FolderScan, StoredSnapshotFile } from './folder-scan.ts';
import type { ScannedSegment } from './segment-scan.ts';
import { SegmentWriter } from './segment-writer.ts';
import type { SegmentLimits } from './segment-writer.ts';
import type { Segment } from './segment.ts';

export interface RecoveredLog {
  /** Ascending; the last one is the writer's. */
  readonly segments: Segment[];
  readonly writer: SegmentWriter;
  readonly snapshot: StoredSnapshotFile | undefined;
}

/**
 * Brings a folder that this process holds back into order after whatever ended the last one: refuses damage, cuts off
 * a torn tail, removes what was left half made, and syncs anew what may not have been. Doing it twice is the same as
 * doing it once.
 */
export async function recoverLog(
  folder: string,
  limits: SegmentLimits,
  { random, onNotice }: { readonly random: Random; readonly onNotice: (notice: string) => void },
): Promise<RecoveredLog> {
  const scan = await scanFolder(folder);
  refuseDamage(folder, scan);
  for (const path of scan.leftovers) await rm(path);
  const last = scan.segments.at(-1);
  const writer =
    last === undefined
      ? await SegmentWriter.create(folder, logStart, limits, random)
      : await recoverTail(last, limits, onNotice);
  await syncFolder(folder);
  return { segments: [...scan.segments.slice(0, -1), writer.segment], writer, snapshot: scan.snapshot };
}

function refuseDamage(folder: string, scan: FolderScan): void {
  const first = scan.damage[0];
  if (first === undefined) return;
  throw new DamageError(first, first.in === 'log' ? logHelp(folder, scan.recoverableIndex) : snapshotHelp);
}

async function recoverTail(
  last: ScannedSegment,
  limits: SegmentLimits,
  onNotice: (notice: string) => void,
): Promise<SegmentWriter> {
  const { path, marker, before, end, bytes, signposts, lastRecord, tail } = last;
  const fd = await openFile(path, 'r+');
  let { fileBytes } = last;
  if (tail.kind === 'torn') {
    onNotice(tornNotice(path, bytes, fileBytes, end, tail.why));
    await truncateFile(fd, bytes);
    fileBytes = bytes;
  }
  const writer = new SegmentWriter({ path, marker, before, end, bytes, fileBytes, signposts }, fd, limits);
  if (lastRecord?.kind === 'batch') {
    await rewrite(fd, lastRecord.offset, bytes);
    await writer.mark('synced');
  } else {
    await syncData(fd);
  }
  return writer;
}

/**
 * Writes bytes of the file over themselves and syncs them. After a failed sync the kernel may count pages as clean
 * whose bytes never reached the disk, and would answer another sync of them with success; written again, they are
 * dirty again.
 */
async function rewrite(fd: number, from: number, to: number): Promise<void> {
  const bytes = Buffer.allocUnsafeSlow(to - from);
  await readFully(fd, bytes, from);
  await writeFully(fd, bytes, bytes.length, from);
  await syncData(fd);
}

function tornNotice(path: string, offset: number, fileBytes: number, end: Position, why: string): string {
  return (
    `${path}: cut off ${fileBytes - offset} bytes at offset ${offset}, an append behind entry ${end.index} ` +
    `that was begun and never acknowledged (${why})`
  );
}
