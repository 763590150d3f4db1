import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endWithUs } from '@tenure/test-support';
import { logStart } from '../../packages/server/src/engines/chain-hash.ts';
import { openFileEngine } from '../../packages/server/src/engines/file/file-engine.ts';
import { readBehind, readSnapshot } from '../../packages/server/src/engines/testing/engine-case.ts';

export interface WriterOptions {
  readonly folder: string;
  readonly appends: number;
  readonly perAppend?: number;
  readonly entryBytes?: number;
  /** A snapshot and a trim after this many appends; 0 for none. */
  readonly snapshotEvery?: number;
  /** Keep the log open at the end. */
  readonly stay?: boolean;
  readonly limits?: { readonly maxSegmentBytes: number; readonly preallocateBytes: number };
}

const defaults = { perAppend: 3, entryBytes: 100, snapshotEvery: 0, stay: false, limits: {} };
const script = fileURLToPath(new URL('log-writer.mjs', import.meta.url));

/** How a writer is started: under strace with injections, or with a limit on the size of its files. */
export interface WriterFaults {
  readonly injections?: readonly string[];
  readonly maxFileKib?: number;
  /** Records the calls that write, sync, rename and print, in order, in this file. */
  readonly traceFile?: string;
  /** A command that runs the writer. */
  readonly under?: readonly string[];
}

/** A process that writes a log, on a working disk or with faults. */
export class WriterProcess {
  readonly process: ChildProcess;
  readonly exited: Promise<void>;
  readonly #options: Required<WriterOptions>;
  #output = '';
  #waiting: (() => void)[] = [];
  #hasExited = false;

  constructor(options: WriterOptions, faults: WriterFaults = {}) {
    const { injections = [], maxFileKib, traceFile, under = [] } = faults;
    this.#options = { ...defaults, ...options } as Required<WriterOptions>;
    const limit = maxFileKib === undefined ? [] : ['bash', '-c', `ulimit -f ${maxFileKib}; exec "$@"`, 'bash'];
    const node = [...under, ...limit, process.execPath, script, JSON.stringify(this.#options)];
    const calls = injections.map((injection) => injection.split(':')[0]!);
    const traced = traceFile === undefined ? calls : ['write', 'pwrite64', 'fdatasync', 'fsync', 'rename'];
    const strace = ['strace', '-f', '-qq', '-o', traceFile ?? '/dev/null', '-e', 'signal=none'];
    strace.push('-e', `trace=${traced.join(',')}`, ...injections.flatMap((one) => ['-e', `inject=${one}`]));
    const command = traced.length === 0 ? node : [...strace, ...node];
    // strace counts the calls of each thread separately, so only one thread makes them.
    const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
    this.process = endWithUs(spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'pipe', 'inherit'], env }));
    this.process.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
      this.#wake();
    });
    this.exited = new Promise((resolve) => {
      this.process.once('close', () => {
        this.#hasExited = true;
        this.#wake();
        resolve();
      });
    });
  }

  /** Resolves with the first line that begins with `word`, or undefined when the process ends without it. */
  async line(word: string): Promise<string | undefined> {
    for (;;) {
      const found = this.lines(word)[0];
      if (found !== undefined || this.#hasExited) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** The complete lines so far that begin with `word`, without that word. */
  lines(word: string): string[] {
    const whole = this.#output.split('\n').slice(0, -1);
    return whole.filter((line) => line.split(' ')[0] === word).map((line) => line.slice(word.length + 1));
  }

  /** The last index reported with `word`, or the end of the log when it was opened. */
  last(word: 'acked' | 'saved' | 'open'): number {
    return Number(this.lines(word).at(-1) ?? 0);
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.exited;
  }
}

/**
 * Opens the log that a writer left behind and compares it with the acknowledged entries. Returns its end. Throws if an
 * entry is missing or different, if it has more than one unacknowledged append, or if a snapshot was lost.
 */
export async function checkLog(options: WriterOptions, acked: number, saved: number): Promise<number> {
  const { folder, limits, perAppend, entryBytes } = { ...defaults, ...options };
  const engine = await openFileEngine({ folder, ...limits });
  try {
    const { index: end } = await engine.tail();
    if (end < acked || end > acked + perAppend || (end - acked) % perAppend !== 0) {
      throw new Error(`${acked} entries were acknowledged and the log ends with ${end}`);
    }
    const snapshot = await readSnapshot(engine);
    const from = (await engine.loadSnapshot())?.position ?? logStart;
    if (from.index < saved)
      throw new Error(`the snapshot of ${saved} was acknowledged and ${from.index} is the newest`);
    if (snapshot !== undefined && snapshot.chunks.length !== 8) throw new Error('the snapshot is incomplete');
    for (const { position, bytes } of await readBehind(engine, from, end - from.index)) {
      if (!Buffer.alloc(entryBytes, `entry ${position.index} `).equals(bytes)) {
        throw new Error(`entry ${position.index} is a different one`);
      }
    }
    return end;
  } finally {
    await engine.close();
  }
}

/** Whether strace works here. Without it, CI fails, and other runs print what was not tested. */
export function straceWorks(): boolean {
  const works = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status === 0;
  if (!works && process.env['CI'] === 'true') throw new Error('strace does not work here, and CI requires it');
  if (!works) console.log('skipped: disk faults need a working strace (package strace)');
  return works;
}

/** Segments, snapshots and trims every few appends, so that each kind of call is frequent. */
export function busyWriter(folder: string): WriterOptions {
  const limits = { maxSegmentBytes: 2000, preallocateBytes: 1000 };
  return { folder, appends: 40, snapshotEvery: 7, limits };
}
