import { stat } from 'node:fs/promises';
import { readSavedSnapshot } from './saved-snapshot.ts';

/** A summary of a snapshot file. */
export interface SnapshotStatus {
  /** Of the whole state, 8 hex digits: equal for equal states. */
  readonly hash: string;
  readonly revision: number;
  /** The oldest readable revision, 0 without a compaction. */
  readonly compactRevision: number;
  readonly keys: number;
  readonly leases: number;
  /** Index of its last log entry. */
  readonly entry: number;
  /** Decimal. */
  readonly clusterId: string;
  /** The version that wrote it. */
  readonly savedBy: string;
  readonly sizeBytes: number;
}

/** Reads and verifies a snapshot file. Rejects with SnapshotFileError, SnapshotError or the system's error. */
export async function snapshotStatus(path: string): Promise<SnapshotStatus> {
  const { size } = await stat(path);
  const { head, state } = await readSavedSnapshot(path);
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
