import * as fs from 'node:fs';
import { systemErrorCode } from './file-system.ts';

/** What a server needs to start and to go on for a while: room ahead of its log, and a snapshot of a small state. */
const wantedMib = 16;
const mib = 1024 * 1024;

/**
 * What an operator has to do about an error that says that the disk is full; undefined for every other error. Nothing
 * that lies in the folder may be removed by hand: the log is the data.
 */
export function noRoomHelp(folder: string, error: unknown): string | undefined {
  const code = systemErrorCode(error);
  if (code === 'EDQUOT') return `the quota of the user is used up: raise it, or free ${wantedMib} MiB of other files`;
  if (code !== 'ENOSPC') return undefined;
  const what = `the disk is full (${freeRoom(folder)})`;
  return `${what}: free ${wantedMib} MiB or more of other files there, or move the folder to a larger disk`;
}

function freeRoom(folder: string): string {
  try {
    const { bavail, bsize, files, ffree } = fs.statfsSync(folder);
    const freeMib = ((bavail * bsize) / mib).toFixed(1);
    return files > 0 && ffree === 0 ? `${freeMib} MiB and no inode free` : `${freeMib} MiB free`;
  } catch {
    return 'how much is free cannot be told';
  }
}

/**
 * Whether the system refused to take bytes in, for want of room: then none that it took before is lost. Of a failed
 * sync that cannot be said, whatever its reason.
 */
export function isRefusedForRoom(error: unknown): boolean {
  const code = systemErrorCode(error);
  const { syscall } = error as NodeJS.ErrnoException;
  return (code === 'ENOSPC' || code === 'EDQUOT') && (syscall === 'write' || syscall === 'open');
}
