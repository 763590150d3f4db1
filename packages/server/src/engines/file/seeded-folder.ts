import * as fs from 'node:fs';
import { join, resolve } from 'node:path';
import type { Random } from '../../random/random.ts';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { prepareDataFolder } from './data-folder.ts';
import { listNames, segmentName, snapshotName, temporaryName } from './file-names.ts';
import { syncFolder } from './file-system.ts';
import { lockFolder } from './folder-lock.ts';
import { SegmentWriter } from './segment-writer.ts';
import { writeSnapshotFile } from './snapshot-file.ts';

const limits = { maxSegmentBytes: Infinity, preallocateBytes: 0 };

/**
 * Makes a data folder that begins with a snapshot of the state at `position`, and an empty log behind it. Rejects
 * with EngineError `unusable` if the folder holds a log already, with `locked` while a server runs on it, and
 * with whatever `chunks` throws; then it has left nothing in the folder. After a crash in between, the engine
 * refuses the folder: remove it and begin again.
 */
export async function seedFolder(
  dataFolder: string,
  position: Position,
  chunks: AsyncIterable<Uint8Array>,
  random: Random,
): Promise<void> {
  const folder = resolve(dataFolder);
  prepareDataFolder(folder);
  const lock = await lockFolder(folder);
  try {
    const { segments, snapshots } = listNames(fs.readdirSync(folder));
    if (segments.length + snapshots.length > 0) {
      throw new EngineError('unusable', `${folder} holds a log already: choose a new folder with --data-dir`);
    }
    await seed(folder, position, chunks, random);
  } finally {
    await lock.release();
  }
}

async function seed(
  folder: string,
  position: Position,
  chunks: AsyncIterable<Uint8Array>,
  random: Random,
): Promise<void> {
  const path = join(folder, snapshotName(position.index));
  try {
    await writeSnapshotFile(temporaryName(path), position, chunks);
    fs.renameSync(temporaryName(path), path);
    await syncFolder(folder);
    await (await SegmentWriter.create(folder, position, limits, random)).close();
  } catch (error) {
    for (const made of [temporaryName(path), path, join(folder, segmentName(position.index + 1))]) {
      fs.rmSync(made, { force: true });
    }
    throw error;
  }
}
