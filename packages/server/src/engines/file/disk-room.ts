import { systemErrorCode } from './file-system.ts';
import type { FileSystem } from './file-system.ts';

/**
 * The room that a server needs to start and run for a while: preallocation of its log, and a snapshot of a small state.
 */
const wantedMib = 16;
const mib = 1024 * 1024;

/**
 * The operator's remedy for an error caused by a full disk; undefined for every other error. No file in the folder may
 * be removed by hand: the log is the data.
 */
export function noRoomHelp(files: FileSystem, folder: string, error: unknown): string | undefined {
  const code = systemErrorCode(error);
  if (code === 'EDQUOT') return `the quota of the user is used up: raise it, or free ${wantedMib} MiB of other files`;
  if (code !== 'ENOSPC') return undefined;
  const what = `the disk is full (${freeRoom(files, folder)})`;
  return `${what}: free ${wantedMib} MiB or more of other files there, or move the folder to a larger disk`;
}

function freeRoom(files: FileSystem, folder: string): string {
  try {
    const { bavail, bsize, files: inodes, ffree } = files.calls.statfsSync(folder);
    const freeMib = ((bavail * bsize) / mib).toFixed(1);
    return inodes > 0 && ffree === 0 ? `${freeMib} MiB and no inode free` : `${freeMib} MiB free`;
  } catch {
    return 'the free space is unknown';
  }
}

/**
 * Whether the system refused a write for lack of room: then no earlier write is lost. That cannot be said of a failed
 * sync, for any reason.
 */
export function isRefusedForRoom(error: unknown): boolean {
  const code = systemErrorCode(error);
  const { syscall } = error as NodeJS.ErrnoException;
  return (code === 'ENOSPC' || code === 'EDQUOT') && (syscall === 'write' || syscall === 'open');
}
