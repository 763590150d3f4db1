import * as fs from 'node:fs';

/**
 * The few calls of the system that the file engine is made of. The callback forms of `fs` on plain descriptors: they
 * take about half the time of a FileHandle per call, and an append is two of them.
 */

/** Writes the first `length` bytes of `buffer` at `position`, all of them: a short write goes on where it stopped. */
export function writeFully(fd: number, buffer: Uint8Array, length: number, position: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let done = 0;
    const step = (): void => {
      fs.write(fd, buffer, done, length - done, position + done, (error, written) => {
        if (error !== null) return reject(error);
        if (written === 0) return reject(new Error(`wrote nothing at offset ${position + done}`));
        done += written;
        if (done === length) return resolve();
        step();
      });
    };
    if (length === 0) return resolve();
    step();
  });
}

/** Fills `buffer` from `position` on. Resolves with how many bytes there were: fewer only at the end of the file. */
export function readFully(fd: number, buffer: Uint8Array, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let done = 0;
    const step = (): void => {
      if (done === buffer.length) return resolve(done);
      fs.read(fd, buffer, done, buffer.length - done, position + done, (error, read) => {
        if (error !== null) return reject(error);
        done += read;
        if (read === 0) return resolve(done);
        step();
      });
    };
    step();
  });
}

/** The bytes of the file and what is needed to find them (its length) are on the disk once this resolves. */
export function syncData(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fs.fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
  });
}

export function openFile(path: string, flags: string): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.open(path, flags, 0o600, (error, fd) => (error === null ? resolve(fd) : reject(error)));
  });
}

export function closeFile(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fs.close(fd, (error) => (error == null ? resolve() : reject(error)));
  });
}

/** Cuts the file off behind its first `length` bytes. */
export function truncateFile(fd: number, length: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fs.ftruncate(fd, length, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** The file as a whole is on the disk once this resolves. */
export function syncFile(fd: number): Promise<void> {
  return new Promise((resolve, reject) => {
    fs.fsync(fd, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** What was created, renamed or removed in the folder stays so once this resolves. */
export async function syncFolder(folder: string): Promise<void> {
  const fd = await openFile(folder, 'r');
  try {
    await syncFile(fd);
  } finally {
    await closeFile(fd);
  }
}

/** The `code` of a system error, such as ENOENT; undefined for every other error. */
export function systemErrorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
