import { createConnection, createServer } from 'node:net';
import type { Server } from 'node:net';
import * as fs from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EngineError } from '../engine-error.ts';
import { noRoomHelp } from './disk-room.ts';
import { systemErrorCode } from './file-system.ts';
import { nodeFileSystem } from './node-file-system.ts';

/**
 * The lock on a data folder: a listening unix socket in it, and on Linux an additional abstract socket.
 *
 * The kernel closes a socket when its process ends in any way, so a lock never outlives its holder and a restart after
 * kill -9 is possible at once. Node has no call for flock or fcntl locks. A pid file cannot tell a dead holder from an
 * unrelated process with the same pid, nor see into another container. A connection to a socket without a listener is
 * refused; a connection to one with a listener succeeds, also when that process is stopped or busy.
 *
 * To take the lock, a process creates a socket under a unique temporary name, listens, renames it to
 * `lock-PID-RANDOM.socket` (so that a socket under such a name listens until its process ends, and one that refuses is
 * stale forever and may be removed by any process), and only then looks for others. Of two processes, the later one to
 * look sees the other. A process that sees another holder gives up. A process that sees another one that is also trying
 * withdraws and retries after a random time. So at most one process holds the lock.
 *
 * A file can be removed by a stray `rm`. So the first step is an abstract socket named after the device and inode of
 * the folder: the kernel gives it to one process, independent of the path, and no file represents it. It is local to
 * one network namespace, so it does not see into other containers: there the holder has to notice, with `lostBecause`,
 * that its file is gone.
 *
 * Its limit: the processes must run on one kernel, in any containers. Two machines that mount the same network file
 * system do not see each other's sockets.
 */
export interface FolderLock {
  /**
   * Why another process may hold the folder by now: the lock file is no longer under the folder's path. Undefined while
   * it is. Costs one file name lookup, a few microseconds.
   */
  lostBecause(): string | undefined;
  release(): Promise<void>;
}

const lockName = /^lock-(\d+)-[0-9a-f]+\.socket$/;
const temporaryLockName = /^lock-\d+-[0-9a-f]+\.socket\.tmp$/;
const maxAttempts = 40;
const maxRetryDelayMs = 50;
/** A live holder answers at once unless it is stopped; then the message names it from its file alone. */
const answerTimeoutMs = 500;
/** The longest socket path that the kernel accepts, on Linux and on others, including the final zero. */
const maxSocketPathBytes = process.platform === 'linux' ? 108 : 104;

/** Takes the lock, or rejects with EngineError `locked` if another process (or this one) has it. */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const folderFd = fs.openSync(folder, 'r');
  const candidate = new Candidate(folder, folderFd);
  try {
    for (let attempt = 1; ; attempt++) {
      const listens = await candidate.listen();
      const rival = (await candidate.findRival('remove the dead')) ?? (listens ? undefined : unnamedRival);
      if (rival === undefined) {
        candidate.hold();
        const release = (): Promise<void> => candidate.withdraw().finally(() => fs.closeSync(folderFd));
        return { lostBecause: () => candidate.lostBecause(), release };
      }
      await candidate.withdraw();
      if (rival.holds || attempt === maxAttempts) throw lockedBy(folder, rival.pid);
      await sleep(Math.random() * maxRetryDelayMs);
    }
  } catch (error) {
    await candidate.withdraw();
    fs.closeSync(folderFd);
    throw error;
  }
}

/** Whether a process holds the folder at the moment: for commands that only read it. */
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

const unnamedRival: Rival = { holds: false, pid: undefined };

interface FileId {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** One process's attempts to take the lock, and its hold once it has it. */
class Candidate {
  readonly #folder: string;
  readonly #folderFd: number;
  readonly #abstractName: string | undefined;
  /** A name is used once: a dead socket that another process has found under it may be removed a moment later. */
  #name = '';
  #inode: FileId | undefined;
  #servers: Server[] = [];
  #hasAbstractName = false;
  #holds = false;

  constructor(folder: string, folderFd: number) {
    this.#folder = folder;
    this.#folderFd = folderFd;
    this.#abstractName = abstractNameOf(folderFd);
  }

  /** False if another process has the abstract name, or took the lock meanwhile and removed the temporary socket. */
  async listen(): Promise<boolean> {
    this.#name = `lock-${process.pid}-${randomBytes(8).toString('hex')}.socket`;
    if (this.#abstractName !== undefined) {
      const refused = await this.#listenAt(this.#abstractName);
      // Where a sandbox forbids abstract sockets, the socket in the folder has to suffice.
      if (systemErrorCode(refused) === 'EADDRINUSE') return false;
      this.#hasAbstractName = refused === undefined;
    }
    const temporary = `${this.#name}.tmp`;
    const refused = await this.#listenAt(this.#socketPath(temporary));
    if (refused !== undefined) throw noSocket(this.#folder, refused);
    try {
      fs.renameSync(join(this.#folder, temporary), join(this.#folder, this.#name));
      this.#inode = fileIdAt(join(this.#folder, this.#name));
      return true;
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return false;
      throw error;
    }
  }

  #listenAt(path: string): Promise<Error | undefined> {
    const server = createServer((connection) => {
      // The asking process may be gone before the answer; that is no error.
      connection.on('error', () => connection.destroy());
      connection.end(this.#holds ? 'holds' : 'looks');
    });
    return new Promise((resolve) => {
      server.on('error', resolve);
      server.listen(path, () => {
        // The lock alone must not keep a process alive.
        server.unref();
        this.#servers.push(server);
        resolve(undefined);
      });
    });
  }

  /** Another process listens for the folder, a holder before all others. */
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
    if (found?.holds === true || this.#abstractName === undefined || this.#hasAbstractName) return found;
    const answer = await probe(this.#abstractName);
    return answer === 'dead' ? found : { holds: answer === 'holds', pid: found?.pid };
  }

  hold(): void {
    this.#holds = true;
    for (const name of fs.readdirSync(this.#folder)) {
      if (temporaryLockName.test(name)) fs.rmSync(join(this.#folder, name), { force: true });
    }
  }

  lostBecause(): string | undefined {
    const path = join(this.#folder, this.#name);
    try {
      const found = fileIdAt(path);
      if (found !== undefined && found.ino === this.#inode?.ino && found.dev === this.#inode.dev) return undefined;
    } catch (error) {
      // Such as ENOTDIR when a file has replaced the folder, or ESTALE: this process no longer holds the folder.
      const code = systemErrorCode(error) ?? String(error);
      return `${path}, the lock on the data folder, cannot be looked at (${code}), so another server may have it`;
    }
    return `${path}, the lock on the data folder, was removed or the folder was moved, so another server may have it`;
  }

  async withdraw(): Promise<void> {
    try {
      if (this.#name !== '') fs.rmSync(join(this.#folder, this.#name), { force: true });
    } catch {
      // The folder is gone or read-only. The dead socket left there is removed by the next process.
    }
    this.#hasAbstractName = false;
    const closed = this.#servers.splice(0).map((server) => {
      return new Promise<void>((resolve) => void server.close(() => resolve()));
    });
    await Promise.all(closed);
  }

  /** A short path to `name` for a folder with a long path, where the system has /proc. */
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

/**
 * Asks the listener at `path` to identify itself. A listener that does not answer in time counts as a stopped holder.
 */
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
      // It disappeared while it was asked: look again. Any other error, such as a full queue or no permission, means
      // alive.
      else resolve(code === 'ECONNRESET' || code === 'EPIPE' ? 'looks' : 'holds');
    });
    connection.on('close', () => {
      clearTimeout(timeout);
      resolve(answer === 'holds' ? 'holds' : 'looks');
    });
  });
}

function lockedBy(folder: string, pid: string | undefined): EngineError {
  const holder = pid === undefined ? 'another process' : `process ${pid}`;
  return new EngineError(
    'locked',
    `the data folder ${folder} is in use by ${holder}: stop that one first, or choose another folder with --data-dir`,
  );
}

function noSocket(folder: string, cause: Error): EngineError {
  const help = noRoomHelp(nodeFileSystem, folder, cause) ?? 'its file system must allow unix sockets';
  return new EngineError('unusable', `cannot lock the data folder ${folder}: ${help} (${cause.message})`, { cause });
}

/** The kernel's identity of the folder, the same for every path; undefined where there are no abstract sockets. */
function abstractNameOf(folderFd: number): string | undefined {
  if (process.platform !== 'linux') return undefined;
  const { dev, ino } = fs.fstatSync(folderFd, { bigint: true });
  return `\0tenure-data-folder-${dev.toString(16)}-${ino.toString(16)}`;
}

function fileIdAt(path: string): FileId | undefined {
  return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
}
