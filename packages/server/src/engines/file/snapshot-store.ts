import { join } from 'node:path';
import { EngineError } from '../engine-error.ts';
import type { Position, StoredSnapshot } from '../log-engine.ts';
import { snapshotName, temporaryName } from './file-names.ts';
import { isRefusedForRoom } from './disk-room.ts';
import type { FileSystem } from './file-system.ts';
import type { StoredSnapshotFile } from './folder-scan.ts';
import { readSnapshotChunks, writeSnapshotChunks } from './snapshot-file.ts';

/** The functions of the owning engine that the store needs. */
export interface SnapshotStoreOwner {
  /** Throws once the engine has ended: a snapshot in progress stops at its next chunk. */
  check(): void;
  /** Ends the engine after a disk failure, and returns the error to throw. */
  fail(what: string, cause: unknown): Error;
}

/** The newest snapshot in a data folder. One is saved at a time. */
export class SnapshotStore {
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #owner: SnapshotStoreOwner;
  #newest: StoredSnapshotFile | undefined;
  #bytes: number;

  constructor(files: FileSystem, folder: string, newest: StoredSnapshotFile | undefined, owner: SnapshotStoreOwner) {
    this.#files = files;
    this.#folder = folder;
    this.#owner = owner;
    this.#newest = newest;
    this.#bytes = newest === undefined ? 0 : (files.statusOf(newest.path)?.size ?? 0);
  }

  /** The last entry in the newest snapshot; undefined without one. */
  get index(): number | undefined {
    return this.#newest?.position.index;
  }

  get sizeBytes(): number {
    return this.#bytes;
  }

  /** Reads the newest snapshot. */
  load(): StoredSnapshot | undefined {
    const newest = this.#newest;
    return newest && { position: newest.position, chunks: readSnapshotChunks(this.#files, newest.path) };
  }

  /** The file gets its name when it is complete and on the disk; then the old one is removed. */
  async save(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const path = join(this.#folder, snapshotName(position.index));
    const watched = new WatchedChunks(chunks, () => this.#owner.check());
    try {
      const bytes = await writeSnapshotChunks(this.#files, temporaryName(path), position, watched);
      await this.#files.rename(temporaryName(path), path);
      await this.#files.syncFolder(this.#folder);
      const old = this.#newest;
      this.#newest = { path, position };
      this.#bytes = bytes;
      if (old !== undefined && old.path !== path) await this.#files.remove(old.path);
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
      await this.#files.removeIfPresent(temporaryPath);
    } catch (error) {
      throw this.#owner.fail(`removing ${temporaryPath} failed`, error);
    }
  }
}

/** A reader holds each chunk in memory as a whole. */
const maxChunkBytes = 256 * 1024 * 1024;

/** Tells an error of the chunks' source from one of the disk, and stops once `check` throws. */
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
