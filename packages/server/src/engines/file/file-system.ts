import type { FileStatus, FileSystemCalls } from './file-system-calls.ts';
import { OpenFile } from './open-file.ts';

/** The files of one machine, by their names. */
export class FileSystem {
  readonly calls: FileSystemCalls;

  constructor(calls: FileSystemCalls) {
    this.calls = calls;
  }

  open(path: string, flags: string): Promise<OpenFile> {
    return new Promise((resolve, reject) => {
      this.calls.open(path, flags, 0o600, (error, fd) => {
        if (error === null) resolve(new OpenFile(this.calls, fd));
        else reject(error);
      });
    });
  }

  rename(from: string, to: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.calls.rename(from, to, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  remove(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.calls.unlink(path, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  async removeIfPresent(path: string): Promise<void> {
    try {
      await this.remove(path);
    } catch (error) {
      if (systemErrorCode(error) !== 'ENOENT') throw error;
    }
  }

  /** Files created, renamed or removed in the folder stay so once this resolves. */
  async syncFolder(folder: string): Promise<void> {
    const file = await this.open(folder, 'r');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }

  namesIn(folder: string): string[] {
    return this.calls.readdirSync(folder);
  }

  /** Undefined if there is no file or folder with that name. */
  statusOf(path: string): FileStatus | undefined {
    return this.calls.statSync(path, { throwIfNoEntry: false });
  }
}

/** The `code` of a system error, such as ENOENT; undefined for every other error. */
export function systemErrorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
