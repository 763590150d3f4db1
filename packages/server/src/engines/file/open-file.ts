import type { FileSystemCalls } from './file-system-calls.ts';

/** An open file, read and written at positions that the caller names. */
export class OpenFile {
  readonly #calls: FileSystemCalls;
  readonly #fd: number;

  constructor(calls: FileSystemCalls, fd: number) {
    this.#calls = calls;
    this.#fd = fd;
  }

  get sizeBytes(): number {
    return this.#calls.fstatSync(this.#fd).size;
  }

  /** Writes the first `length` bytes of `buffer` at `position`: a short write is continued. */
  writeFully(buffer: Uint8Array, length: number, position: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let done = 0;
      const step = (): void => {
        this.#calls.write(this.#fd, buffer, done, length - done, position + done, (error, written) => {
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

  /**
   * Fills `buffer` from `position` on. Resolves with the number of bytes read: fewer than requested only at the end of
   * the file.
   */
  readFully(buffer: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      let done = 0;
      const step = (): void => {
        if (done === buffer.length) return resolve(done);
        this.#calls.read(this.#fd, buffer, done, buffer.length - done, position + done, (error, read) => {
          if (error !== null) return reject(error);
          done += read;
          if (read === 0) return resolve(done);
          step();
        });
      };
      step();
    });
  }

  /** The bytes of the file and its length are on the disk once this resolves. */
  syncData(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#calls.fdatasync(this.#fd, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /** The file as a whole is on the disk once this resolves. */
  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#calls.fsync(this.#fd, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /** Truncates the file to `length` bytes. */
  truncate(length: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#calls.ftruncate(this.#fd, length, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  close(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#calls.close(this.#fd, (error) => (error == null ? resolve() : reject(error)));
    });
  }
}
