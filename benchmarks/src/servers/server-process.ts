import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const startTimeoutMs = 120_000;
const stopTimeoutMs = 30_000;
const retryMs = 10;
const stderrKeptBytes = 4096;
/** How the kernel counts processor time for programs, whatever its own tick is. */
const msPerClockTick = 10;

/** A program and its arguments. */
export interface Command {
  readonly program: string;
  readonly args: readonly string[];
}

/** Those still alive: none may outlive the benchmarks, however they end. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

/** A server that runs as a process of its own. */
export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #name: string;
  #stderr = '';

  private constructor(name: string, child: ChildProcess) {
    this.#name = name;
    this.#child = child;
    alive.add(child);
    child.once('exit', () => alive.delete(child));
    child.on('error', (error) => (this.#stderr += error.message));
    child.stderr?.on('data', (text: Buffer) => {
      this.#stderr = (this.#stderr + text.toString()).slice(-stderrKeptBytes);
    });
  }

  /** Resolves when `isUp` says so for the first time; what it throws counts as no. */
  static async start(name: string, { program, args }: Command, isUp: () => Promise<boolean>): Promise<ServerProcess> {
    const server = new ServerProcess(name, spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] }));
    try {
      await server.#until(isUp);
      return server;
    } catch (error) {
      await server.stop('SIGKILL');
      throw error;
    }
  }

  get hasEnded(): boolean {
    return this.#child.pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Memory that the process holds, in bytes. */
  rssBytes(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
  }

  /** Processor time of the process and of its children so far, in ms; 0 once it has ended. */
  cpuMs(): number {
    if (this.hasEnded) return 0;
    const { pid } = this.#child;
    const stats = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const ofTree = stats.map(readStat).filter((stat) => stat?.pid === pid || stat?.parent === pid);
    return ofTree.reduce((sum, stat) => sum + (stat?.cpuMs ?? 0), 0);
  }

  /** Ends the process in order, by force when it takes too long. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.hasEnded) return;
    const exited = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill(signal);
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeoutMs);
    await exited;
    clearTimeout(timer);
  }

  async #until(isUp: () => Promise<boolean>): Promise<void> {
    const deadlineMs = performance.now() + startTimeoutMs;
    for (;;) {
      if (this.hasEnded || performance.now() > deadlineMs) {
        throw new Error(`${this.#name} did not start: ${this.#stderr}`);
      }
      if (await isUp().catch(() => false)) return;
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

/** Undefined for a process that has ended meanwhile. What its own children used counts once they have ended. */
function readStat(pid: string): { pid: number; parent: number; cpuMs: number } | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The name of the program stands in brackets and may hold anything; behind it come the state and the parent.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
  return { pid: Number(pid), parent: Number(fields[1]), cpuMs: ticks * msPerClockTick };
}
