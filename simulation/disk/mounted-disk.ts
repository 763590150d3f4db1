import type { NodeClock, SeededRandom } from '@tenure/test-support';
import { basename } from 'node:path';
import type { FileStatus, FileSystemCalls } from '../../packages/server/src/engines/file/file-system-calls.ts';
import type { SimulatedDisk } from './simulated-disk.ts';
import type { SimulatedFile } from './simulated-file.ts';

type Done = (error: Error | null) => void;
type TransferDone = (error: Error | null, bytes: number) => void;

const folderMode = 0o40700;

/** The system calls of one process on the disk. They take time, and end with the process. */
export class MountedDisk implements FileSystemCalls {
  /** Whether a call has failed in this process, for any reason. */
  hasFailed = false;
  /** Whether a write or a sync of the log has failed: no append may be acknowledged from then on. */
  hasFailedWrite = false;
  readonly #disk: SimulatedDisk;
  readonly #clock: NodeClock;
  readonly #random: SeededRandom;
  /** By descriptor; undefined stands for the folder. */
  readonly #open = new Map<number, { readonly name: string; readonly file: SimulatedFile | undefined }>();
  #lastFd = 2;

  constructor(disk: SimulatedDisk, clock: NodeClock, random: SeededRandom) {
    this.#disk = disk;
    this.#clock = clock;
    this.#random = random;
  }

  open(path: string, flags: string, _mode: number, done: (error: Error | null, fd: number) => void): void {
    const name = basename(path);
    const found = this.#disk.file(name);
    if (found === undefined && flags === 'r' && !name.includes('.')) return this.#opened(name, undefined, done);
    if (found === undefined && flags.startsWith('r')) return this.#fail('ENOENT', 'open', (error) => done(error, -1));
    if (flags.startsWith('r')) return this.#opened(name, found, done);
    if (this.#disk.usedBytes >= this.#disk.roomBytes) return this.#fail('ENOSPC', 'open', (error) => done(error, -1));
    if (this.#dies()) return;
    found?.truncate(0);
    this.#opened(name, found ?? this.#disk.create(name), done);
  }

  close(fd: number, done: Done): void {
    this.#open.delete(fd);
    this.#later(() => done(null));
  }

  read(fd: number, buffer: Uint8Array, offset: number, length: number, position: number, done: TransferDone): void {
    const { faults } = this.#disk;
    if (faults.happens('failed read')) return this.#fail('EIO', 'read', (error) => done(error, 0));
    this.#later(() => {
      const target = buffer.subarray(offset, offset + length);
      const read = this.#open.get(fd)?.file?.read(target, position) ?? 0;
      if (read > 0 && faults.lies('bit flipped on read')) {
        const bit = this.#random.below(read * 8);
        target[bit >>> 3]! ^= 1 << (bit & 7);
        this.#disk.losePowerSoon();
      }
      done(null, read);
    });
  }

  write(fd: number, buffer: Uint8Array, offset: number, length: number, position: number, done: TransferDone): void {
    if (this.#clock.dead) return;
    const { name, file } = this.#open.get(fd)!;
    const failed = (error: Error): void => {
      // Room ahead of the log may be refused without a loss.
      const isAhead = buffer.subarray(offset, offset + length).every((byte) => byte === 0);
      if (!isAhead && isLog(name)) this.hasFailedWrite = true;
      done(error, 0);
    };
    if (this.#disk.faults.happens('failed write')) return this.#fail('EIO', 'write', failed);
    const roomBytes = file!.length + Math.max(0, this.#disk.roomBytes - this.#disk.usedBytes) - position;
    let written = Math.min(length, Math.max(0, roomBytes));
    if (written === 0) return this.#fail('ENOSPC', 'write', failed);
    if (length > 1 && this.#disk.faults.happens('short write')) written = this.#random.integer(1, written);
    file!.write(buffer.subarray(offset, offset + written), position);
    if (!this.#dies()) this.#later(() => done(null, written));
  }

  fdatasync(fd: number, done: Done): void {
    const { name, file } = this.#open.get(fd)!;
    if (this.#dies()) return;
    const changes = file!.changes;
    if (this.#disk.faults.happens('failed sync')) {
      this.#disk.failSync(file!);
      return this.#fail('EIO', 'fdatasync', (error) => {
        if (isLog(name)) this.hasFailedWrite = true;
        done(error);
      });
    }
    this.#later(() => {
      this.#disk.syncFile(file!, changes);
      done(null);
    });
  }

  fsync(fd: number, done: Done): void {
    const { file } = this.#open.get(fd)!;
    if (file !== undefined) return this.fdatasync(fd, done);
    if (this.#dies()) return;
    const changes = this.#disk.nameChanges;
    if (this.#disk.faults.happens('failed sync')) {
      return this.#fail('EIO', 'fsync', done);
    }
    this.#later(() => {
      this.#disk.syncNames(changes);
      done(null);
    });
  }

  ftruncate(fd: number, length: number, done: Done): void {
    if (this.#clock.dead) return;
    this.#open.get(fd)!.file!.truncate(length);
    if (!this.#dies()) this.#later(() => done(null));
  }

  rename(from: string, to: string, done: Done): void {
    if (this.#clock.dead) return;
    this.#disk.rename(basename(from), basename(to));
    if (!this.#dies()) this.#later(() => done(null));
  }

  unlink(path: string, done: Done): void {
    if (this.#disk.file(basename(path)) === undefined) return this.#fail('ENOENT', 'unlink', done);
    if (this.#clock.dead) return;
    this.#disk.remove(basename(path));
    if (!this.#dies()) this.#later(() => done(null));
  }

  fstatSync(fd: number): { readonly size: number } {
    return { size: this.#open.get(fd)?.file?.length ?? 0 };
  }

  statSync(path: string): FileStatus | undefined {
    const file = this.#disk.file(basename(path));
    const isFolder = !basename(path).includes('.');
    if (file === undefined && !isFolder) return undefined;
    const size = file?.length ?? 0;
    return { size, mode: folderMode, uid: 0, isFile: () => !isFolder, isDirectory: () => isFolder };
  }

  readdirSync(): string[] {
    return [...this.#disk.names];
  }

  mkdirSync(): undefined {}

  chmodSync(): void {}

  statfsSync() {
    return { bavail: Math.max(0, this.#disk.roomBytes - this.#disk.usedBytes), bsize: 1, files: 0, ffree: 0 };
  }

  #opened(name: string, file: SimulatedFile | undefined, done: (error: Error | null, fd: number) => void): void {
    const fd = ++this.#lastFd;
    this.#open.set(fd, { name, file });
    this.#later(() => done(null, fd));
  }

  /** The process has ended, or ends in this operation. */
  #dies(): boolean {
    return this.#clock.dead || this.#disk.operates();
  }

  #later(done: () => void): void {
    this.#clock.deliver(this.#disk.faults.latencyMs(), done);
  }

  #fail(code: string, syscall: string, done: (error: Error) => void): void {
    if (code !== 'ENOENT') this.hasFailed = true;
    this.#later(() => done(Object.assign(new Error(`${code}: simulated, ${syscall}`), { code, syscall })));
  }
}

function isLog(name: string): boolean {
  return name.endsWith('.segment') || name.endsWith('.segment.tmp');
}
