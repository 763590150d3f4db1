import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { systemRandom } from '../../random/system-random.ts';
import { logStart } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { LoggedEntry, Position } from '../log-engine.ts';
import { existingDataFolder } from './data-folder.ts';
import { lockFolder } from './folder-lock.ts';
import { scanFolder } from './folder-scan.ts';
import type { FolderScan } from './folder-scan.ts';
import { nodeFileSystem as files } from './node-file-system.ts';
import { RecordReader } from './record-reader.ts';
import { segmentHeaderBytes } from './segment-format.ts';
import { samePosition } from './segment-scan.ts';
import type { ScannedSegment } from './segment-scan.ts';
import { SegmentWriter } from './segment-writer.ts';

export interface LogTruncation {
  /** The new end of the log. */
  readonly lastIndex: number;
  /** The original files that were truncated or moved away. */
  readonly copyFolder: string;
  readonly files: readonly string[];
}

const limits = { maxSegmentBytes: Infinity, preallocateBytes: 0 };

/**
 * Truncates the log after entry `after` and moves everything after it, and damaged segments that the snapshot makes
 * superfluous, into a folder inside the data folder. Rejects, having changed nothing, with `locked` while a server
 * runs, and with `unusable` if the entries up to `after` are not complete or the snapshot is later than `after`. It may
 * be repeated after a crash.
 */
export async function truncateLog(dataFolder: string, after: number): Promise<LogTruncation> {
  const folder = existingDataFolder(files, dataFolder);
  const lock = await lockFolder(folder);
  try {
    const scan = await scanFolder(files, folder);
    refuse(scan, after);
    const start = scan.snapshot?.position ?? logStart;
    const kept = keptSegments(scan, start, after);
    const copyFolder = makeCopyFolder(folder, after);
    const gone = fs.readdirSync(folder).filter((name) => {
      return /^log-\d+\.segment$/.test(name) && !kept.some(({ path }) => basename(path) === name);
    });
    const moved = [...gone];
    const last = kept.at(-1);
    if (last !== undefined) {
      const copy = join(copyFolder, basename(last.path));
      fs.copyFileSync(last.path, copy);
      await syncPath(copy);
      moved.push(basename(last.path));
    }
    await files.syncFolder(copyFolder);
    // From the end backwards, so that after a crash the rest is refused or is the same log, and the command can be
    // repeated.
    for (const name of gone.toReversed()) fs.renameSync(join(folder, name), join(copyFolder, name));
    await files.syncFolder(copyFolder);
    await files.syncFolder(folder);
    if (last === undefined)
      await (await SegmentWriter.create(files, { folder, before: start, limits, random: systemRandom })).close();
    else await cutBehind(last, after);
    await files.syncFolder(folder);
    return { lastIndex: after, copyFolder, files: moved.toSorted() };
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

/** The remaining segments: an unbroken run from the one that holds `start` to the one that holds entry `after`. */
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

/** Truncates the segment after entry `after`, in the middle of a record if necessary: its beginning is rewritten. */
async function cutBehind(segment: ScannedSegment, after: number): Promise<void> {
  const file = await files.open(segment.path, 'r+');
  let bytes = segmentHeaderBytes;
  let end = segment.before;
  let front: readonly LoggedEntry[] = [];
  const reader = new RecordReader(file, segment.marker);
  while (end.index < after) {
    const record = await reader.read(bytes, segment.bytes);
    if (record === undefined) {
      await file.close();
      throw new EngineError('damaged', `${segment.path} has changed at offset ${bytes} while it was read`);
    }
    if (record.header.after.index > after) {
      front = record.entries.filter(({ position }) => position.index <= after);
      break;
    }
    end = record.header.after;
    bytes = record.endOffset;
  }
  await file.truncate(bytes);
  await file.sync();
  const { path, marker, before } = segment;
  const writer = new SegmentWriter({ path, marker, before, end, bytes, fileBytes: bytes, signposts: [] }, file, limits);
  if (front.length > 0) await writer.append(front.map((entry) => entry.bytes));
  else await writer.mark('synced');
  await writer.close();
}

async function syncPath(path: string): Promise<void> {
  const file = await files.open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
