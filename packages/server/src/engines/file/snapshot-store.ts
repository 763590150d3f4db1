import * as fs from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { EngineError } from '../engine-error.ts';
import type { Position, StoredSnapshot } from '../log-engine.ts';
import { snapshotName, temporaryName } from './file-names.ts';
import { isRefusedForRoom } from './disk-room.ts';
import { syncFolder } from './file-system.ts';
import type { StoredSnapshotFile } from './folder-scan.ts';
import { readSnapshotChunks, writeSnapshotFile } from './snapshot-file.ts';

/** What the store asks of the engine that it belongs to. */
export interface SnapshotStoreOwner {
  /** Throws once the engine has ended: a snapshot that is being written stops at its next chunk. */
  check(): void;
  /** Ends the engine, since the disk has failed, and gives the error to throw. */
  fail(what: string, cause: unknown): Error;
}

/** The newest snapshot in a data folder. One is saved at a time. */
export class SnapshotStore {
  readonly #folder: string;
  readonly #owner: SnapshotStoreOwner;
  #newest: StoredSnapshotFile | undefined;
  #bytes: number;

  constructor(folder: string, newest: StoredSnapshotFile | undefined, owner: SnapshotStoreOwner) {
    this.#folder = folder;
    this.#owner = owner;
    this.#newest = newest;
    this.#bytes = newest === undefined ? 0 : fs.statSync(newest.path).size;
  }

  /** The last entry that the newest snapshot holds; undefined without one. */
  get index(): number | undefined {
    return this.#newest?.position.index;
  }

  get sizeBytes(): number {
    return this.#bytes;
  }

  /** Reads the newest snapshot. */
  load(): StoredSnapshot | undefined {
    const newest = this.#newest;
    return newest && { position: newest.position, chunks: readSnapshotChunks(newest.path) };
  }

  /** It gets its name when it is whole and on the disk, and the old one goes after that. */
  async save(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const path = join(this.#folder, snapshotName(position.index));
    const watched = new WatchedChunks(chunks, () => this.#owner.check());
    try {
      const bytes = await writeSnapshotFile(temporaryName(path), position, watched);
      await rename(temporaryName(path), path);
      await syncFolder(this.#folder);
      const old = this.#newest;
      this.#newest = { path, position };
      this.#bytes = bytes;
      if (old !== undefined && old.path !== path) await rm(old.path);
    } catch (error) {
      if (!watched.failed && !isRefusedForRoom(error))
        throw this.#owner.fail(`writing the snapshot ${path} failed`, error);
      await this.#giveUp(temporaryName(path));
      if (watched.failed) throw error;
      throw new EngineError('full', `there is no room for the snapshot ${path}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  async #giveUp(temporaryPath: string): Promise<void> {
    try {
      await rm(temporaryPath, { force: true });
    } catch (error) {
      throw this.#owner.fail(`removing ${temporaryPath} failed`, error);
    }
  }
}

/** A chunk is held in memory as a whole by whoever reads it. */
const maxChunkBytes = 256 * 1024 * 1024;

/** Tells an error of whoever makes the chunks from one of the disk, and stops the walk once `check` throws. */
class WatchedChunks implements AsyncIterable<Uint8Array> {
  failed = false;
  readonly #chunks: AsyncIterable<Uint8Array>;
  readonly #check: () => void;

  constructor(chunks: AsyncIterable<Uint8Array>, check: () => void) {
    this.#chunks = chunks;
    this.#check = check;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of this.#chunks) {
        this.#check();
        if (chunk.length > maxChunkBytes) throw new Error(`a snapshot chunk is larger than ${maxChunkBytes} bytes`);
        yield chunk;
      }
    } catch (error) {
      this.failed = true;
      throw error;
    }
  }
}
