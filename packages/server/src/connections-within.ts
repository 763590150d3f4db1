import { readFileSync } from 'node:fs';

/**
 * What the server opens beside the connections of clients: the log, snapshots, the engine, its stream to the leader,
 * and the connections that are reserved for other servers (`maxReservedConnections`).
 */
const keptFiles = 128 + 64;
/** A server that may open hardly anything still serves somebody. */
const leastConnections = 16;

/**
 * How many connections clients may hold, of up to `most`, so that what the system lets the process open is not used up
 * by them: an engine without a file to write to stops the server. `limits` is what Linux says of the process
 * (/proc/self/limits); elsewhere nothing is known, and `most` it is.
 */
export function connectionsWithin(most: number, limits: string = readLimits()): number {
  const [, openFiles] = /^Max open files\s+(\d+)\s/m.exec(limits) ?? [];
  if (openFiles === undefined) return most;
  return Math.max(leastConnections, Math.min(most, Number(openFiles) - keptFiles));
}

function readLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1');
  } catch {
    return '';
  }
}
