import { readFileSync } from 'node:fs';

/**
 * Files that the server needs beside the connections of clients: the log, snapshots, the engine, its stream to the
 * leader, and the connections reserved for other servers (`maxReservedConnections`).
 */
const keptFiles = 128 + 64;
/** Connections at the addresses for servers alone, beside those reserved for servers with the secret. */
export const maxPeerConnections = 256;
/** The minimum, so that a server with a very low limit still serves some clients. */
export const leastConnections = 16;

/**
 * The number of connections that clients may hold, at most `most`. It is limited by the files that the process may
 * open, of which `forOthers` are for other connections: an engine without a file to write to stops the server. `limits`
 * is the content of /proc/self/limits on Linux. Elsewhere the limit is unknown, and the result is `most`.
 */
export function connectionLimit(most: number, forOthers: number, limits: string = readLimits()): number {
  const [, openFiles] = /^Max open files\s+(\d+)\s/m.exec(limits) ?? [];
  if (openFiles === undefined) return most;
  return Math.max(leastConnections, Math.min(most, Number(openFiles) - keptFiles - forOthers));
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1');
  } catch {
    return '';
  }
}
