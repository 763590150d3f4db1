/** What the file engine asks about a file or folder by its name. */
export interface FileStatus {
  readonly size: number;
  readonly mode: number;
  readonly uid: number;
  isFile(): boolean;
  isDirectory(): boolean;
}

/**
 * The system calls of the file engine: `node:fs` has all of them, and a simulated disk can have others. Calls on
 * descriptors have callback forms: they take about half the time of a FileHandle per call, and an append needs two.
 */
export interface FileSystemCalls {
  open(path: string, flags: string, mode: number, done: (error: Error | null, fd: number) => void): void;
  close(fd: number, done: Done): void;
  read(fd: number, buffer: Uint8Array, offset: number, length: number, position: number, done: TransferDone): void;
  write(fd: number, buffer: Uint8Array, offset: number, length: number, position: number, done: TransferDone): void;
  fdatasync(fd: number, done: Done): void;
  fsync(fd: number, done: Done): void;
  ftruncate(fd: number, length: number, done: Done): void;
  rename(from: string, to: string, done: Done): void;
  unlink(path: string, done: Done): void;
  fstatSync(fd: number): { readonly size: number };
  statSync(path: string, options: { readonly throwIfNoEntry: false }): FileStatus | undefined;
  readdirSync(folder: string): string[];
  mkdirSync(folder: string, options: { readonly recursive: true; readonly mode: number }): unknown;
  chmodSync(path: string, mode: number): void;
  statfsSync(folder: string): {
    readonly bavail: number;
    readonly bsize: number;
    readonly files: number;
    readonly ffree: number;
  };
}

type Done = (error: Error | null) => void;
type TransferDone = (error: Error | null, bytes: number) => void;
