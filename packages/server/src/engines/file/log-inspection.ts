import { join } from 'node:path';
import type { Position } from '../log-engine.ts';
import { DamageError, logHelp } from './damage.ts';
import type { Damage } from './damage.ts';
import { existingDataFolder } from './data-folder.ts';
import { isFolderLocked } from './folder-lock.ts';
import { listFolder, scanFolder } from './folder-scan.ts';
import { nodeFileSystem as files } from './node-file-system.ts';
import { RecordReader } from './record-reader.ts';
import { segmentHeaderBytes } from './segment-format.ts';
import { samePosition, scanSegment } from './segment-scan.ts';
import type { Segment } from './segment.ts';
import { readSnapshotChunks } from './snapshot-file.ts';

export interface LogReport {
  readonly folder: string;
  /** A server runs on the folder: its current write may show as an unfinished append. */
  readonly inUse: boolean;
  readonly segments: readonly {
    readonly file: string;
    readonly firstIndex: number;
    /** The last intact entry; firstIndex - 1 if there is none. */
    readonly lastIndex: number;
    readonly fileBytes: number;
  }[];
  /** The number of intact entries, and their first and last index. 0 for the indexes of an empty log. */
  readonly entries: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly snapshot: { readonly file: string; readonly position: Position; readonly fileBytes: number } | undefined;
  /** An append that was begun and never acknowledged: the next start of the server truncates it. */
  readonly unfinished:
    | { readonly file: string; readonly offset: number; readonly bytes: number; readonly why: string }
    | undefined;
  readonly damage: readonly Damage[];
  /**
   * The range that `truncateLog` can keep: entries up to here continue without a gap from the snapshot or the start of
   * the log.
   */
  readonly recoverableIndex: number;
}

/** Reads and checks everything in the data folder: each checksum, the running hash, the snapshot. Changes nothing. */
export async function verifyLog(dataFolder: string): Promise<LogReport> {
  const folder = existingDataFolder(files, dataFolder);
  const inUse = await isFolderLocked(folder);
  const scan = await scanFolder(files, folder);
  const { segments, snapshot, recoverableIndex } = scan;
  const last = segments.at(-1);
  const entries = segments.reduce((sum, { before, end }) => sum + end.index - before.index, 0);
  return {
    folder,
    inUse,
    segments: segments.map(({ path, before, end, fileBytes }) => {
      return { file: path, firstIndex: before.index + 1, lastIndex: end.index, fileBytes };
    }),
    entries,
    firstIndex: entries === 0 ? 0 : segments[0]!.before.index + 1,
    lastIndex: last?.end.index ?? 0,
    snapshot: snapshot && {
      file: snapshot.path,
      position: snapshot.position,
      fileBytes: files.statusOf(snapshot.path)?.size ?? 0,
    },
    unfinished:
      last?.tail.kind === 'torn'
        ? { file: last.path, offset: last.bytes, bytes: last.fileBytes - last.bytes, why: last.tail.why }
        : undefined,
    damage: [...scan.damage, ...(snapshot === undefined ? [] : await damageInSnapshot(snapshot.path))],
    recoverableIndex,
  };
}

async function damageInSnapshot(path: string): Promise<Damage[]> {
  try {
    for await (const chunk of readSnapshotChunks(files, path)) void chunk;
    return [];
  } catch (error) {
    if (error instanceof DamageError) return [error.damage];
    throw error;
  }
}

export interface DumpedEntry {
  readonly index: number;
  /** The running hash up to and including the entry. */
  readonly hash: string;
  readonly bytes: Uint8Array;
  readonly file: string;
  /** The file offset of the record with the entry. */
  readonly offset: number;
}

/**
 * The entries of the log with an index in [from, to], in order; all entries without them. Stops with EngineError
 * `damaged` at the first unreadable place, unless it is an unfinished append at the end. Changes nothing.
 */
export async function* dumpLog(
  dataFolder: string,
  range: { readonly from?: number; readonly to?: number } = {},
): AsyncGenerator<DumpedEntry> {
  const { from = 1, to = Infinity } = range;
  const folder = existingDataFolder(files, dataFolder);
  const { segments } = listFolder(files, folder);
  let expected: Position | undefined;
  for (const [place, { name, firstIndex }] of segments.entries()) {
    const nextFirstIndex = segments[place + 1]?.firstIndex ?? Infinity;
    if (nextFirstIndex <= from) continue;
    if (firstIndex > to) return;
    const file = join(folder, name);
    const scan = await scanSegment(files, file, nextFirstIndex - 1, () => undefined);
    const damaged = (offset: number, what: string): DamageError => {
      const index = expected?.index ?? firstIndex - 1;
      return new DamageError({ in: 'log', file, offset, lastGoodIndex: index, what }, logHelp(folder, index));
    };
    if (scan.kind !== 'scanned') throw damaged(0, 'it does not begin as a segment that this program reads');
    const { segment } = scan;
    if (expected !== undefined && !samePosition(expected, segment.before)) {
      throw damaged(0, `it does not follow entry ${expected.index}`);
    }
    yield* dumpRecords(segment, from, to);
    expected = segment.end;
    const complete = segment.end.index >= Math.min(to, nextFirstIndex - 1);
    if (!complete && segment.tail.kind === 'damaged') throw damaged(segment.bytes, segment.tail.why);
    if (!complete && nextFirstIndex !== Infinity)
      throw damaged(segment.bytes, `entries up to ${nextFirstIndex - 1} are missing`);
  }
}

async function* dumpRecords(segment: Segment, from: number, to: number): AsyncGenerator<DumpedEntry> {
  const { path: file, marker, bytes: endOffset } = segment;
  const open = await files.open(file, 'r');
  try {
    const reader = new RecordReader(open, marker);
    for (let offset = segmentHeaderBytes; offset < endOffset;) {
      const record = await reader.read(offset, endOffset);
      if (record === undefined) return;
      for (const { position, bytes } of record.entries) {
        if (position.index > to) return;
        if (position.index >= from) yield { index: position.index, hash: position.hash, bytes, file, offset };
      }
      offset = record.endOffset;
    }
  } finally {
    await open.close();
  }
}
