import { snapshotName, temporaryName } from '../../packages/server/src/engines/file/file-names.ts';
import { join } from 'node:path';

export interface DiskFault {
  readonly call: 'pwrite64' | 'fdatasync';
  readonly error: 'EIO' | 'ENOSPC';
  /** The number of calls that succeed before all fail, counted on the matching files. */
  readonly after: number;
  /** Only writes to unfinished snapshots fail. */
  readonly onlySnapshots?: boolean;
}

/** Snapshots up to this entry get their own count; tests take theirs long before it. */
const maxSnapshotIndex = 500;

/**
 * The command that runs a server on a failing disk. The server is the process that is started. It needs
 * UV_THREADPOOL_SIZE=1, since calls are counted per thread.
 */
export function faultyDisk(fault: DiskFault, dataDir: string): readonly string[] {
  const paths = fault.onlySnapshots === true ? snapshotPaths(dataDir) : [];
  return [
    'strace',
    ...['-D', '-f', '-qq', '-o', '/dev/null'],
    ...paths.flatMap((path) => ['-P', path]),
    ...['-e', `trace=${fault.call}`],
    ...['-e', `inject=${fault.call}:error=${fault.error}:when=${fault.after + 1}+`],
  ];
}

function snapshotPaths(dataDir: string): string[] {
  return Array.from({ length: maxSnapshotIndex }, (_, at) => join(dataDir, temporaryName(snapshotName(at + 1))));
}
