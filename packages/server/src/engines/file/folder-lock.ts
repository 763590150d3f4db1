import { createConnection, createServer } from 'node:net';
import type { Server } from 'node:net';
import * as fs from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EngineError } from '../engine-error.ts';
import { systemErrorCode } from './file-system.ts';

/**
 * The lock on a data folder: a listening unix socket in it.
 *
 * The kernel closes a socket with its process, however that ends, so a lock never outlives its holder and a restart
 * after kill -9 is possible at once; Node has no call for flock or fcntl locks, and a file with a pid cannot tell a
 * dead holder from a stranger with the same number, nor look into another container. A connection to a socket that
 * nobody listens on is refused; to one that somebody listens on, it succeeds, also when that process is stopped or
 * busy.
 *
 * To take the lock, a process makes a socket under a temporary name of its own, listens, renames it to
 * `lock-PID-RANDOM.socket` (so that a socket under such a name listens until its process is gone, and one that
 * refuses is stale for ever and may be removed by anybody), and only then looks for others. Of two processes, the one
 * that looks later sees the other. Whoever sees another one that holds the lock, gives up; whoever sees another one
 * that is looking too, withdraws and tries again after a random time. So at most one holds it.
 *
 * Its limit: the processes must run on one kernel, in whatever containers. Two machines that mount the same network
 * file system do not see one another's sockets.
 */
export interface FolderLock {
  release(): Promise<void>;
}

const lockName = /^lock-(\d+)-[0-9a-f]+\.socket$/;
const temporaryLockName = /^lock-\d+-[0-9a-f]+\.socket\.tmp$/;
const maxAttempts = 40;
const maxRetryDelayMs = 50;
/** A holder that is alive answers at once unless it is stopped; then it is named from its file alone. */
const answerTimeoutMs = 500;
/** The longest path that the kernel takes for a socket, on Linux and on others, with its final zero. */
const maxSocketPathBytes = process.platform === 'linux' ? 108 : 104;

/** Takes the lock, or rejects with EngineError `locked` if another process (or this one) has it. */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const folderFd = fs.openSync(folder, 'r');
  try {
    for (let attempt = 1; ; attempt++) {
      const candidate = new Candidate(folder, folderFd);
      const rival = (await candidate.listen())
        ? await candidate.findRival('remove the dead')
        : { holds: false, pid: undefined };
      if (rival === undefined) {
        candidate.hold();
        return { release: () => candidate.withdraw().finally(() => fs.closeSync(folderFd)) };
      }
      await candidate.withdraw();
      if (rival.holds || attempt === maxAttempts) throw lockedBy(folder, rival.pid);
      await sleep(Math.random() * maxRetryDelayMs);
    }
  } catch (error) {
    fs.closeSync(folderFd);
    throw error;
  }
}

/** Whether a process holds the folder at the moment: for those who only read it. */
export async function isFolderLocked(folder: string): Promise<boolean> {
  const folderFd = fs.openSync(folder, 'r');
  try {
    return (await new Candidate(folder, folderFd).findRival('leave the dead'))?.holds ?? false;
  } finally {
    fs.closeSync(folderFd);
  }
}

interface Rival {
  readonly holds: boolean;
  readonly pid: string | undefined;
}

/** One process's attempt to take the lock, and its hold once it has it. */
class Candidate {
  readonly #folder: string;
  readonly #folderFd: number;
  readonly #name = `lock-${process.pid}-${randomBytes(8).toString('hex')}.socket`;
  readonly #server: Server;
  #holds = false;

  constructor(folder: string, folderFd: number) {
    this.#folder = folder;
    this.#folderFd = folderFd;
    this.#server = createServer((connection) => {
      // Whoever asks may be gone before the answer: nothing to do about it.
      connection.on('error', () => connection.destroy());
      connection.end(this.#holds ? 'holds' : 'looks');
    });
  }

  /** False if somebody who took the lock meanwhile has swept the temporary socket away. */
  async listen(): Promise<boolean> {
    const temporary = `${this.#name}.tmp`;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(noSocket(this.#folder, error)));
      this.#server.listen(this.#socketPath(temporary), resolve);
    });
    // The lock must not be what keeps a process alive that has nothing else to do.
    this.#server.unref();
    try {
      fs.renameSync(join(this.#folder, temporary), join(this.#folder, this.#name));
      return true;
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return false;
      throw error;
    }
  }

  /** Somebody else who listens in the folder, a holder before all others. */
  async findRival(dead: 'remove the dead' | 'leave the dead'): Promise<Rival | undefined> {
    let found: Rival | undefined;
    for (const name of fs.readdirSync(this.#folder)) {
      const pid = lockName.exec(name)?.[1];
      if (pid === undefined || name === this.#name) continue;
      const answer = await probe(this.#socketPath(name));
      if (answer === 'dead') {
        if (dead === 'remove the dead') fs.rmSync(join(this.#folder, name), { force: true });
      } else if (found?.holds !== true) found = { holds: answer === 'holds', pid };
    }
    return found;
  }

  hold(): void {
    this.#holds = true;
    for (const name of fs.readdirSync(this.#folder)) {
      if (temporaryLockName.test(name)) fs.rmSync(join(this.#folder, name), { force: true });
    }
  }

  withdraw(): Promise<void> {
    fs.rmSync(join(this.#folder, this.#name), { force: true });
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  /** A path to `name` that is short however long the folder's is, where the system has /proc. */
  #socketPath(name: string): string {
    const throughDescriptor = `/proc/self/fd/${this.#folderFd}`;
    const path = join(fs.existsSync(throughDescriptor) ? throughDescriptor : this.#folder, name);
    if (Buffer.byteLength(path) < maxSocketPathBytes) return path;
    throw new EngineError(
      'unusable',
      `the path ${path} is too long for the lock: name a data folder with a shorter one`,
    );
  }
}

/** Asks who listens at `path`. Whoever listens and does not answer in time is taken for a holder that stands still. */
function probe(path: string): Promise<'dead' | 'looks' | 'holds'> {
  return new Promise((resolve) => {
    let answer = '';
    const connection = createConnection(path);
    const timeout = setTimeout(() => {
      resolve('holds');
      connection.destroy();
    }, answerTimeoutMs);
    connection.setEncoding('latin1');
    connection.on('data', (text: string) => (answer += text));
    connection.on('error', (error) => {
      const code = systemErrorCode(error);
      if (code === 'ECONNREFUSED' || code === 'ENOENT') resolve('dead');
      // It went away while it was asked: look again. Everything else, such as a full queue or no permission, is alive.
      else resolve(code === 'ECONNRESET' || code === 'EPIPE' ? 'looks' : 'holds');
    });
    connection.on('close', () => {
      clearTimeout(timeout);
      resolve(answer === 'holds' ? 'holds' : 'looks');
    });
  });
}

function lockedBy(folder: string, pid: string | undefined): EngineError {
  const holder = pid === undefined ? 'another process that is starting' : `process ${pid}`;
  return new EngineError(
    'locked',
    `the data folder ${folder} is in use by ${holder}: stop that one first, or choose another folder with --data-dir`,
  );
}

function noSocket(folder: string, cause: Error): EngineError {
  const message = `cannot lock the data folder ${folder}: its file system must allow unix sockets (${cause.message})`;
  return new EngineError('unusable', message, { cause });
}
