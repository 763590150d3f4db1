import { join } from 'node:path';
import { logStart } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { DamageError } from './damage.ts';
import type { Damage } from './damage.ts';
import { listNames, segmentName } from './file-names.ts';
import type { FolderListing } from './file-names.ts';
import type { FileSystem } from './file-system.ts';
import type { SegmentRecord } from './record-reader.ts';
import { samePosition, scanSegment } from './segment-scan.ts';
import type { ScannedSegment } from './segment-scan.ts';
import { readSnapshotPosition } from './snapshot-file.ts';

export interface StoredSnapshotFile {
  readonly path: string;
  readonly position: Position;
}

/** The contents of a data folder. Reading stops at the first damage of each segment. */
export interface FolderScan {
  /** The files with a valid segment header, ascending. */
  readonly segments: readonly ScannedSegment[];
  readonly snapshot: StoredSnapshotFile | undefined;
  /** Paths of files that a crash left incomplete or not yet removed. */
  readonly leftovers: readonly string[];
  readonly damage: readonly Damage[];
  /** Entries up to here continue without a gap from the snapshot or the start of the log. */
  readonly recoverableIndex: number;
}

/**
 * The names of the log's files in `folder`. Throws EngineError `unusable` when one of them is not a file: reading a
 * folder fails with a bare error code, and reading a pipe never ends.
 */
export function listFolder(files: FileSystem, folder: string): FolderListing {
  const names = listNames(files.namesIn(folder));
  const parts = [...names.segments, ...names.snapshots].map(({ name }) => name);
  for (const name of [...parts, ...names.leftovers]) {
    const path = join(folder, name);
    const stat = files.statusOf(path);
    if (stat === undefined || stat.isFile()) continue;
    const what = `${path} is ${stat.isDirectory() ? 'a folder' : 'no file'} and has the name of a part of the log`;
    throw new EngineError('unusable', `${what}: move it away, and put back the file if there was one`);
  }
  return names;
}

/** Reads and verifies the whole log in `folder`, and the position of its snapshot, without changing anything. */
export async function scanFolder(files: FileSystem, folder: string): Promise<FolderScan> {
  const names = listFolder(files, folder);
  const damage: Damage[] = [];
  const snapshot = await findSnapshot(files, folder, names, damage);
  let atSnapshot: Position | undefined;
  const watch = ({ header, entries }: SegmentRecord): void => {
    const index = snapshot?.position.index;
    if (header.before.index === index) atSnapshot = header.before;
    for (const { position } of entries) if (position.index === index) atSnapshot = position;
  };
  const segments: ScannedSegment[] = [];
  for (const [place, { name, firstIndex }] of names.segments.entries()) {
    const nextFirstIndex = names.segments[place + 1]?.firstIndex;
    const segment = await scanNamed(files, join(folder, name), { firstIndex, nextFirstIndex }, watch);
    const last = segments.at(-1);
    if (segment === undefined) {
      const what = 'it does not begin as the segment of the log that its name says';
      damage.push({ in: 'log', file: join(folder, name), offset: 0, lastGoodIndex: last?.end.index ?? 0, what });
      continue;
    }
    segments.push(segment);
    damage.push(...damageInside(segment, nextFirstIndex), ...(last === undefined ? [] : damageBetween(last, segment)));
  }
  damage.push(...damageAround(folder, segments, snapshot, atSnapshot));
  const leftovers = [...names.leftovers, ...names.snapshots.slice(0, -1).map(({ name }) => name)];
  return {
    segments,
    snapshot,
    leftovers: leftovers.map((name) => join(folder, name)),
    damage,
    recoverableIndex: recoverableIndex(segments, snapshot),
  };
}

async function findSnapshot(
  files: FileSystem,
  folder: string,
  names: FolderListing,
  damage: Damage[],
): Promise<StoredSnapshotFile | undefined> {
  const newest = names.snapshots.at(-1);
  if (newest === undefined) return undefined;
  const path = join(folder, newest.name);
  try {
    const position = await readSnapshotPosition(files, path);
    if (position.index === newest.index) return { path, position };
    const what = `it stands at entry ${position.index}, which its name denies`;
    damage.push({ in: 'snapshot', file: path, offset: 0, lastGoodIndex: undefined, what });
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    damage.push(error.damage);
  }
  return undefined;
}

async function scanNamed(
  files: FileSystem,
  path: string,
  { firstIndex, nextFirstIndex }: { readonly firstIndex: number; readonly nextFirstIndex: number | undefined },
  onRecord: (record: SegmentRecord) => void,
): Promise<ScannedSegment | undefined> {
  const scan = await scanSegment(files, path, nextFirstIndex === undefined ? Infinity : nextFirstIndex - 1, onRecord);
  if (scan.kind === 'newer') {
    const message = `${path} has log format ${scan.version}, which a newer Tenure wrote: run that one`;
    throw new EngineError('unusable', message);
  }
  return scan.kind === 'scanned' && scan.segment.before.index === firstIndex - 1 ? scan.segment : undefined;
}

/** Follows the log from the snapshot on until the first damage. */
function recoverableIndex(segments: readonly ScannedSegment[], snapshot: StoredSnapshotFile | undefined): number {
  const start = snapshot?.position ?? logStart;
  const first = segments.findIndex(({ before, end }) => before.index <= start.index && start.index <= end.index);
  if (first === -1) return start.index;
  let last = segments[first]!;
  for (const segment of segments.slice(first + 1)) {
    if (!samePosition(last.end, segment.before)) break;
    last = segment;
  }
  return last.end.index;
}

/** The damage in one segment, the last one if no entry is known to begin the next. */
function damageInside(segment: ScannedSegment, nextFirstIndex: number | undefined): Damage[] {
  const { path: file, bytes: offset, tail, end } = segment;
  const place = { in: 'log' as const, file, offset, lastGoodIndex: end.index };
  // All entries that the next segment builds on are present: the bytes after them were never part of the log.
  if (nextFirstIndex !== undefined && end.index >= nextFirstIndex - 1) return [];
  if (tail.kind === 'damaged') return [{ ...place, what: tail.why }];
  if (tail.kind === 'torn' && nextFirstIndex !== undefined) return [{ ...place, what: tail.why }];
  if (nextFirstIndex !== undefined || segment.lastRecord?.kind !== 'sealed') return [];
  return [{ ...place, what: `the log goes on in ${segmentName(end.index + 1)}, which is missing` }];
}

function damageBetween(last: ScannedSegment, next: ScannedSegment): Damage[] {
  if (samePosition(last.end, next.before)) return [];
  const place = { in: 'log' as const, file: next.path, offset: 0, lastGoodIndex: last.end.index };
  if (last.end.index < next.before.index) {
    if (last.tail.kind !== 'end') return [];
    return [{ ...place, what: `entries ${last.end.index + 1} to ${next.before.index} are missing before it` }];
  }
  return [{ ...place, what: `it does not follow entry ${last.end.index} of ${last.path}: it belongs to another log` }];
}

/** Whether log and snapshot have the same history, and together reach back to the start. */
function damageAround(
  folder: string,
  segments: readonly ScannedSegment[],
  newest: StoredSnapshotFile | undefined,
  atSnapshot: Position | undefined,
): Damage[] {
  const first = segments[0];
  const last = segments.at(-1);
  if (first === undefined || last === undefined) {
    if (newest === undefined) return [];
    const { index } = newest.position;
    return [
      { in: 'log', file: folder, offset: 0, lastGoodIndex: index, what: `the log behind entry ${index} is missing` },
    ];
  }
  const place = { in: 'log' as const, file: first.path, offset: 0, lastGoodIndex: newest?.position.index ?? 0 };
  if (newest === undefined) {
    if (samePosition(first.before, logStart)) return [];
    return [
      { ...place, what: `entries 1 to ${first.before.index} are missing, and there is no snapshot in ${folder}` },
    ];
  }
  const { index } = newest.position;
  if (first.before.index > index) {
    return [
      { ...place, what: `entries ${index + 1} to ${first.before.index} are missing between the snapshot and it` },
    ];
  }
  if (last.end.index < index) {
    const what = `the log ends with entry ${last.end.index}, before the snapshot of entry ${index}`;
    return [{ in: 'log', file: last.path, offset: last.bytes, lastGoodIndex: last.end.index, what }];
  }
  const known = [first.before, last.end, atSnapshot].find((position) => position?.index === index);
  // Where the entry cannot be read, other damage is reported.
  if (known === undefined || samePosition(known, newest.position)) return [];
  const what = `it is not a snapshot of this log's entry ${index}`;
  return [{ in: 'snapshot', file: newest.path, offset: 0, lastGoodIndex: undefined, what }];
}
