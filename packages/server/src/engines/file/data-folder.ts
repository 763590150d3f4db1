import { resolve } from 'node:path';
import { EngineError } from '../engine-error.ts';
import type { FileSystem } from './file-system.ts';

const folderMode = 0o700;
const othersBits = 0o007;

/**
 * Creates the data folder, accessible to its owner only, or checks the existing one. An empty one is made private. One
 * that has contents and is open to all users is refused: a user who may replace its files may rewrite the log, and the
 * engine does not change the mode of a folder in use. Group access is the operator's decision.
 */
export function prepareDataFolder(files: FileSystem, folder: string): void {
  try {
    files.calls.mkdirSync(folder, { recursive: true, mode: folderMode });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new EngineError('unusable', `cannot make the data folder ${folder}: ${why}`, { cause });
  }
  const stat = files.statusOf(folder);
  if (stat === undefined) throw new EngineError('unusable', `the data folder ${folder} has been removed`);
  if ((stat.mode & othersBits) === 0) return;
  if (files.namesIn(folder).length === 0 && stat.uid === process.geteuid?.()) {
    files.calls.chmodSync(folder, folderMode);
    return;
  }
  const mode = (stat.mode & 0o7777).toString(8);
  const what = `the data folder ${folder} is open to every user of this machine (mode ${mode})`;
  const help = `run \`chmod 700 ${folder}\`, or choose another folder with --data-dir`;
  throw new EngineError('unusable', `${what}: ${help}`);
}

/** For commands that only read or repair a data folder: refuses a missing folder instead of creating it. */
export function existingDataFolder(files: FileSystem, path: string): string {
  const folder = resolve(path);
  if (files.statusOf(folder)?.isDirectory() === true) return folder;
  throw new EngineError('unusable', `there is no data folder ${folder}: name it with --data-dir`);
}
