import { ChildProgram, type Command } from '@tenure/test-support';
import { readdirSync, readFileSync } from 'node:fs';

const startTimeoutMs = 120_000;
/** The kernel's unit of processor time for programs, independent of its own tick. */
const msPerClockTick = 10;

// When the benchmarks are stopped from outside, the end of this process stops their servers.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

/** A server as a child process, and its resource usage. */
export class MeasuredProcess extends ChildProgram {
  /** Resolves when it first responds. */
  static async start(command: Command, isUp: () => Promise<unknown>): Promise<MeasuredProcess> {
    const server = new MeasuredProcess({ ...command, isSilent: true });
    try {
      await server.answers(isUp, startTimeoutMs);
      return server;
    } catch (error) {
      await server.end('SIGKILL');
      throw error;
    }
  }

  /** Memory that the process holds, in bytes. */
  rssBytes(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
  }

  cpuMs(): number {
    return this.hasEnded ? 0 : cpuMsOf(this.pid);
  }
}

/** Processor time of a process and of its children so far, in ms; 0 once it has ended. */
export function cpuMsOf(pid: number): number {
  const stats = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const ofTree = stats.map(readStat).filter((stat) => stat?.pid === pid || stat?.parent === pid);
  return ofTree.reduce((sum, stat) => sum + (stat?.cpuMs ?? 0), 0);
}

/** Undefined for a process that has ended meanwhile. The usage of its children counts once they have ended. */
function readStat(pid: string): { pid: number; parent: number; cpuMs: number } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The name of the program is in brackets and may contain anything; the state and the parent follow.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
  return { pid: Number(pid), parent: Number(fields[1]), cpuMs: ticks * msPerClockTick };
}
