import type { Readable, Writable } from 'node:stream';

/** The parts of the process that a command may use. */
export interface CommandIo {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
}
