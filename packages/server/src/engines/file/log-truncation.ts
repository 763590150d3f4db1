import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { systemRandom } from '../../random/system-random.ts';
import { logStart } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { LoggedEntry, Position } from '../log-engine.ts';
import { existingDataFolder } from './data-folder.ts';
import { closeFile, openFile, syncFile, syncFolder, truncateFile } from './file-system.ts';
import { lockFolder } from './folder-lock.ts';
import { scanFolder } from './folder-scan.ts';
import type { FolderScan } from './folder-scan.ts';
import { RecordReader } from './record-reader.ts';
import { segmentHeaderBytes } from './segment-format.ts';
import { samePosition } from './segment-scan.ts';
import type { ScannedSegment } from './segment-scan.ts';
import { SegmentWriter } from './segment-writer.ts';

export interface LogTruncation {
  /** Where the log ends now. */
  readonly lastIndex: number;
  /** The files as they were before, those that were cut or taken away. */
  readonly copyFolder: string;
  readonly files: readonly string[];
}

const limits = { maxSegmentBytes: Infinity, preallocateBytes: 0 };

/**
 * Ends the log behind entry `after` and moves everything else that is in its way into a folder inside the data
 * folder: what lies behind `after`, and damaged segments that the snapshot makes superfluous. Rejects, having changed
 * nothing, with `locked` while a server runs, and with `unusable` if the entries up to `after` are not all there or
 * the snapshot stands behind it. It may be repeated after a crash.
 */
export async function truncateLog(dataFolder: string, after: number): Promise<LogTruncation> {
  const folder = existingDataFolder(dataFolder);
  const lock = await lockFolder(folder);
  try {
    const scan = await scanFolder(folder);
    refuse(scan, after);
    const start = scan.snapshot?.position ?? logStart;
    const kept = keptSegments(scan, start, after);
    const copyFolder = makeCopyFolder(folder, after);
    const gone = fs.readdirSync(folder).filter((name) => {
      return /^log-\d+\.segment$/.test(name) && !kept.some(({ path }) => basename(path) === name);
    });
    const files = [...gone];
    const last = kept.at(-1);
    if (last !== undefined) {
      const copy = join(copyFolder, basename(last.path));
      fs.copyFileSync(last.path, copy);
      await syncPath(copy);
      files.push(basename(last.path));
    }
    await syncFolder(copyFolder);
    // From the end on, so that what is left after a crash is refused or the same log, and the command can be repeated.
    for (const name of gone.toReversed()) fs.renameSync(join(folder, name), join(copyFolder, name));
    await syncFolder(copyFolder);
    await syncFolder(folder);
    if (last === undefined) await (await SegmentWriter.create(folder, start, limits, systemRandom)).close();
    else await cutBehind(last, after);
    await syncFolder(folder);
    return { lastIndex: after, copyFolder, files: files.toSorted() };
  } finally {
    await lock.release();
  }
}

function refuse({ snapshot, recoverableIndex }: FolderScan, after: number): void {
  const first = snapshot?.position.index ?? 0;
  if (after >= first && after <= recoverableIndex) return;
  const why =
    after < first
      ? `the snapshot stands at entry ${first}, and the state cannot go back behind it`
      : `the log is whole up to entry ${recoverableIndex} only`;
  throw new EngineError('unusable', `cannot end the log behind entry ${after}: ${why}; nothing was changed`);
}

/** The segments that stay: an unbroken run from the one that holds `start` to the one that holds entry `after`. */
function keptSegments({ segments }: FolderScan, start: Position, after: number): ScannedSegment[] {
  const first = segments.findIndex(({ before, end }) => before.index <= start.index && start.index <= end.index);
  const kept: ScannedSegment[] = [];
  for (const segment of first === -1 ? [] : segments.slice(first)) {
    const last = kept.at(-1);
    if (last !== undefined && (segment.before.index >= after || !samePosition(last.end, segment.before))) break;
    kept.push(segment);
  }
  return kept;
}

function makeCopyFolder(folder: string, after: number): string {
  for (let number = 1; ; number++) {
    const path = join(folder, `cut-after-${after}-${number}`);
    if (fs.existsSync(path)) continue;
    fs.mkdirSync(path, { mode: 0o700 });
    return path;
  }
}

/** Ends the segment behind entry `after`, in the middle of a record if need be: its front is written anew. */
async function cutBehind(segment: ScannedSegment, after: number): Promise<void> {
  const fd = await openFile(segment.path, 'r+');
  let bytes = segmentHeaderBytes;
  let end = segment.before;
  let front: readonly LoggedEntry[] = [];
  const reader = new RecordReader(fd, segment.marker);
  while (end.index < after) {
    const record = await reader.read(bytes, segment.bytes);
    if (record === undefined) {
      await closeFile(fd);
      throw new EngineError('damaged', `${segment.path} has changed at offset ${bytes} while it was read`);
    }
    if (record.header.after.index > after) {
      front = record.entries.filter(({ position }) => position.index <= after);
      break;
    }
    end = record.header.after;
    bytes = record.endOffset;
  }
  await truncateFile(fd, bytes);
  await syncFile(fd);
  const { path, marker, before } = segment;
  const writer = new SegmentWriter({ path, marker, before, end, bytes, fileBytes: bytes, signposts: [] }, fd, limits);
  if (front.length > 0) await writer.append(front.map((entry) => entry.bytes));
  else await writer.mark('synced');
  await writer.close();
}

async function syncPath(path: string): Promise<void> {
  const fd = await openFile(path, 'r');
  try {
    await syncFile(fd);
  } finally {
    await closeFile(fd);
  }
}
