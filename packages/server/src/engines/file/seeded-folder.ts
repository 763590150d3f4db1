import { join, resolve } from 'node:path';
import type { Random } from '../../random/random.ts';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { prepareDataFolder } from './data-folder.ts';
import { listNames, segmentName, snapshotName, temporaryName } from './file-names.ts';
import { lockFolder } from './folder-lock.ts';
import { nodeFileSystem as files } from './node-file-system.ts';
import { SegmentWriter } from './segment-writer.ts';
import { writeSnapshotChunks } from './snapshot-file.ts';

const limits = { maxSegmentBytes: Infinity, preallocateBytes: 0 };

/**
 * Creates a data folder that begins with a snapshot of the state at `position`, and an empty log after it. Rejects with
 * EngineError `unusable` if the folder holds a log already, with `locked` while a server runs on it, and with any error
 * of `chunks`; then no file is left in the folder. After a crash in between, the engine refuses the folder: remove it
 * and start over.
 */
export async function seedFolder(
  dataFolder: string,
  position: Position,
  chunks: AsyncIterable<Uint8Array>,
  random: Random,
): Promise<void> {
  const folder = resolve(dataFolder);
  prepareDataFolder(files, folder);
  const lock = await lockFolder(folder);
  try {
    const { segments, snapshots } = listNames(files.namesIn(folder));
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
    await writeSnapshotChunks(files, temporaryName(path), position, chunks);
    await files.rename(temporaryName(path), path);
    await files.syncFolder(folder);
    await (await SegmentWriter.create(files, { folder, before: position, limits, random })).close();
  } catch (error) {
    for (const made of [temporaryName(path), path, join(folder, segmentName(position.index + 1))]) {
      await files.removeIfPresent(made);
    }
    throw error;
  }
}
