import { createReadStream, statSync, type ReadStream } from 'node:fs';
import { EngineError } from '../engines/engine-error.ts';

/** The bytes of a snapshot file. Throws EngineError `unusable` for a folder, whose reading fails with a bare code. */
export function snapshotStream(path: string): ReadStream {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new EngineError('unusable', `${path}: it is a folder, and no snapshot`);
  }
  return createReadStream(path);
}
