import { createReadStream, statSync, type ReadStream } from 'node:fs';
import { type NewCluster, SnapshotReader, type StateMachine } from '@tenure/core';
import { EngineError } from '../engines/engine-error.ts';
import { readSnapshotFile, type SnapshotFileHead } from '../replica/snapshot-file.ts';

/** A snapshot file, read and verified. */
export interface SavedSnapshot {
  readonly head: SnapshotFileHead;
  readonly state: StateMachine;
}

/**
 * Reads and verifies a snapshot file. `clusterOf` names the new cluster that the state is for, when it is for one.
 * Rejects with SnapshotFileError, SnapshotError, EngineError or the system's error.
 */
export async function readSavedSnapshot(
  path: string,
  clusterOf?: (head: SnapshotFileHead) => NewCluster,
): Promise<SavedSnapshot> {
  let head: SnapshotFileHead | undefined;
  const reader = new SnapshotReader();
  for await (const part of readSnapshotFile(snapshotStream(path))) {
    if ('head' in part) head = part.head;
    else reader.push(part.chunk);
  }
  if (head === undefined) throw new Error('a snapshot was read without its head');
  return { head, state: reader.finish(clusterOf?.(head)) };
}

/** The bytes of a snapshot file. Throws EngineError `unusable` for a folder, whose reading fails with a bare code. */
function snapshotStream(path: string): ReadStream {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new EngineError('unusable', `${path}: it is a folder, and no snapshot`);
  }
  return createReadStream(path);
}
