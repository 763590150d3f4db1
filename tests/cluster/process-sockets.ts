import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The columns of the local address and the inode of a socket in /proc/net/tcp. */
const localAddressColumn = 1;
const inodeColumn = 9;

/** Whether a process has a TCP connection over IPv4 at this local port. */
export function hasLocalPort(pid: number, port: number): boolean {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  const inodes = new Set<string>();
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1)) {
    const columns = line.trim().split(/\s+/);
    if (columns[localAddressColumn]?.endsWith(`:${wanted}`)) inodes.add(`socket:[${columns[inodeColumn]}]`);
  }
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return inodes.has(readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      // It was closed since the folder was read.
      return false;
    }
  });
}
