import * as fs from 'node:fs';
import { resolve } from 'node:path';
import { EngineError } from '../engine-error.ts';

const folderMode = 0o700;
const othersBits = 0o007;

/**
 * Makes the data folder, for its owner alone, or checks the one that is there. An empty one is made private; one that
 * holds something and is open to everybody is refused, since who may replace its files may rewrite the log, and a
 * mode that was given to a folder in use is not ours to change. Access for the group is left to whoever set it up.
 */
export function prepareDataFolder(folder: string): void {
  try {
    fs.mkdirSync(folder, { recursive: true, mode: folderMode });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new EngineError('unusable', `cannot make the data folder ${folder}: ${why}`, { cause });
  }
  const stat = fs.statSync(folder);
  if ((stat.mode & othersBits) === 0) return;
  if (fs.readdirSync(folder).length === 0 && stat.uid === process.geteuid?.()) {
    fs.chmodSync(folder, folderMode);
    return;
  }
  const mode = (stat.mode & 0o7777).toString(8);
  const what = `the data folder ${folder} is open to every user of this machine (mode ${mode})`;
  const help = `run \`chmod 700 ${folder}\`, or choose another folder with --data-dir`;
  throw new EngineError('unusable', `${what}: ${help}`);
}

/** For those who only look at a data folder or repair it: refuses one that is not there, instead of making it. */
export function existingDataFolder(path: string): string {
  const folder = resolve(path);
  if (fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return folder;
  throw new EngineError('unusable', `there is no data folder ${folder}: name it with --data-dir`);
}
