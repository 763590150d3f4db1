import { SnapshotReader, type StateMachine } from '@tenure/core';
import { stat } from 'node:fs/promises';
import { readSnapshotFile, type SnapshotFileHead } from '../replica/snapshot-file.ts';
import { snapshotStream } from './snapshot-stream.ts';

/** What a snapshot file holds. */
export interface SnapshotStatus {
  /** Of the whole state, 8 hex digits: equal for equal states. */
  readonly hash: string;
  readonly revision: number;
  /** The oldest revision that can be read, 0 when none was compacted. */
  readonly compactRevision: number;
  readonly keys: number;
  readonly leases: number;
  /** Index of the last entry of the log that it holds. */
  readonly entry: number;
  /** Decimal. */
  readonly clusterId: string;
  /** The version that saved it. */
  readonly savedBy: string;
  readonly sizeBytes: number;
}

/** Reads and verifies a snapshot file. Rejects with SnapshotFileError, SnapshotError or the system's error. */
export async function snapshotStatus(path: string): Promise<SnapshotStatus> {
  const { size } = await stat(path);
  const { head, state } = await readSnapshot(path);
  return {
    hash: state.stateHash().toString(16).padStart(8, '0'),
    revision: state.currentRevision,
    compactRevision: Math.max(0, state.compactRevision),
    keys: state.keyCount,
    leases: state.leaseCount,
    entry: head.position.index,
    clusterId: head.clusterId,
    savedBy: head.tenureVersion,
    sizeBytes: size,
  };
}

async function readSnapshot(path: string): Promise<{ head: SnapshotFileHead; state: StateMachine }> {
  let head: SnapshotFileHead | undefined;
  const reader = new SnapshotReader();
  for await (const part of readSnapshotFile(snapshotStream(path))) {
    if ('head' in part) head = part.head;
    else reader.push(part.chunk);
  }
  if (head === undefined) throw new Error('a snapshot was read without its head');
  return { head, state: reader.finish() };
}
