import { snapshotName, temporaryName } from '../../packages/server/src/engines/file/file-names.ts';
import { join } from 'node:path';

export interface DiskFault {
  readonly call: 'pwrite64' | 'fdatasync';
  readonly error: 'EIO' | 'ENOSPC';
  /** How many of the calls succeed before all fail; counted on the files that are meant. */
  readonly after: number;
  /** Only what is written to snapshots in the making fails. */
  readonly onlySnapshots?: boolean;
}

/** Snapshots up to this entry are told apart; tests take theirs long before. */
const maxSnapshotIndex = 500;

/**
 * The command that runs a server on a disk that fails. The server stays the process that is started, and needs
 * UV_THREADPOOL_SIZE=1, since calls are counted for each thread by itself.
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
