import { resolve } from 'node:path';
import type { Random } from '../../random/random.ts';
import { systemRandom } from '../../random/system-random.ts';
import { backgroundClock } from '../../time/system-clock.ts';
import type { Clock } from '../../time/clock.ts';
import { every } from '../../time/every.ts';
import { EngineError } from '../engine-error.ts';
import type { LogEngine, LoggedEntry, Position, StoredSnapshot } from '../log-engine.ts';
import { AppendNotifier } from '../append-notifier.ts';
import { prepareDataFolder } from './data-folder.ts';
import { noRoomHelp } from './disk-room.ts';
import { systemErrorCode } from './file-system.ts';
import type { FileSystem } from './file-system.ts';
import { lockFolder } from './folder-lock.ts';
import type { FolderLock } from './folder-lock.ts';
import { nodeFileSystem } from './node-file-system.ts';
import { recoverLog } from './recovered-log.ts';
import type { RecoveredLog } from './recovered-log.ts';
import { SegmentCursor } from './segment-cursor.ts';
import { SegmentWriter } from './segment-writer.ts';
import type { SegmentLimits } from './segment-writer.ts';
import type { Segment } from './segment.ts';
import { SnapshotStore } from './snapshot-store.ts';

export interface FileEngineOptions {
  readonly folder: string;
  /** A new segment begins once the current one has this size. 64 MiB by default. */
  readonly maxSegmentBytes?: number;
  /** Bytes preallocated ahead of the log; 0 for none. 1 MiB by default. */
  readonly preallocateBytes?: number;
  /** A followed chunk holds no more bytes than this, except that it holds at least one entry. 1 MiB by default. */
  readonly maxFollowBytes?: number;
  /** For the lock checks; by default a clock whose timers do not keep the process alive. */
  readonly clock?: Clock;
  /** For the markers of segments; the process's random source by default. */
  readonly random?: Random;
  /** The files of this machine by default. */
  readonly files?: FileSystem;
  /** Takes the folder for this process, as `lockFolder` does by default. */
  readonly lock?: (folder: string) => Promise<FolderLock>;
  /** Receives the repairs made at opening, for the operator's log. */
  readonly onNotice?: (notice: string) => void;
  /** Called once when another server may have taken the folder while no call was in progress. */
  readonly onLockLost?: (error: EngineError) => void;
}

/**
 * The interval of lock checks in addition to the checks before and after each write: the maximum time for which
 * responses served from memory may be wrong.
 */
const lockCheckIntervalMs = 200;

/**
 * Opens the log in a folder of this machine, creates it if it does not exist, and holds it until `close` or the end of
 * the process. Rejects with EngineError `locked`, `damaged` or `unusable`, and then nothing was changed; or with
 * `fatal` when the disk fails.
 */
export async function openFileEngine(options: FileEngineOptions): Promise<LogEngine> {
  const folder = resolve(options.folder);
  const { files = nodeFileSystem, random = systemRandom, onNotice = () => undefined } = options;
  const limits: SegmentLimits = {
    maxSegmentBytes: options.maxSegmentBytes ?? 64 * 1024 * 1024,
    preallocateBytes: options.preallocateBytes ?? 1024 * 1024,
  };
  prepareDataFolder(files, folder);
  const lock = await (options.lock ?? lockFolder)(folder);
  try {
    const log = await recoverLog(files, folder, limits, { random, onNotice });
    return new FileEngine(folder, limits, options, lock, log);
  } catch (error) {
    await lock.release();
    if (error instanceof EngineError) throw error;
    const message = `opening the log in ${folder} failed: ${messageOf(error)}`;
    throw new EngineError('fatal', withHelp(message, noRoomHelp(files, folder, error)), { cause: error });
  }
}

class FileEngine implements LogEngine {
  readonly name = 'file';
  readonly isShared = false;
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #limits: SegmentLimits;
  readonly #maxFollowBytes: number;
  readonly #lock: FolderLock;
  readonly #random: Random;
  readonly #cancelLockChecks: () => void;
  /** Ascending and without gaps; the last one belongs to the writer. */
  readonly #segments: Segment[];
  #writer: SegmentWriter;
  readonly #snapshots: SnapshotStore;
  readonly #notifier = new AppendNotifier();
  /** The write in progress, so that close can wait for it. */
  #appending: Promise<Position> | undefined;
  #tidying: Promise<void> = Promise.resolve();
  #saving = false;
  /** The reason why every call is refused. */
  #ended: EngineError | undefined;
  #closing: Promise<void> | undefined;

  constructor(folder: string, limits: SegmentLimits, options: FileEngineOptions, lock: FolderLock, log: RecoveredLog) {
    const { maxFollowBytes = 1024 * 1024, files = nodeFileSystem, random = systemRandom, onLockLost } = options;
    this.#files = files;
    this.#folder = folder;
    this.#limits = limits;
    this.#maxFollowBytes = maxFollowBytes;
    this.#lock = lock;
    this.#random = random;
    this.#cancelLockChecks = every(options.clock ?? backgroundClock, lockCheckIntervalMs, () =>
      this.#lookAtLock(onLockLost),
    );
    this.#segments = log.segments;
    this.#writer = log.writer;
    this.#snapshots = new SnapshotStore(files, folder, log.snapshot, {
      check: () => this.#check(),
      fail: (what, cause) => this.#fail(what, cause),
    });
  }

  async append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    this.#check();
    if (this.#appending !== undefined) throw new Error('an append was begun while another one is in progress');
    const tail = this.#end;
    if (after.index !== tail.index || after.hash !== tail.hash) {
      const message = `the log ends at entry ${tail.index}, not at ${after.index} as the append expected`;
      throw new EngineError('conflict', message, { tail });
    }
    if (batch.length === 0) return tail;
    if (!SegmentWriter.fits(batch)) throw new Error(`an append of ${batch.length} entries is too large for one record`);
    this.#appending = this.#write(batch);
    try {
      return await this.#appending;
    } catch (error) {
      throw this.#fail(`an append to ${this.#writer.segment.path} failed`, error);
    } finally {
      this.#appending = undefined;
      this.#notifier.notify();
    }
  }

  /**
   * The lock is checked again after the sync. If it is still held, a server that takes the folder later finds the
   * entry; if not, another server may have read the log before the entry was in it, so the entry must not be
   * acknowledged.
   */
  async #write(batch: readonly Uint8Array[]): Promise<Position> {
    this.#checkLock();
    if (this.#writer.isFull) await this.#rotate();
    await this.#writer.append(batch);
    this.#checkLock();
    return this.#writer.segment.end;
  }

  /**
   * The new segment is on the disk before the old one is sealed, so that a sealed last segment proves that one is
   * missing.
   */
  async #rotate(): Promise<void> {
    const full = this.#writer;
    this.#writer = await this.#createSegment(full.segment.end);
    await full.seal();
    this.#segments.push(this.#writer.segment);
  }

  #createSegment(before: Position): Promise<SegmentWriter> {
    const segment = { folder: this.#folder, before, limits: this.#limits, random: this.#random };
    return SegmentWriter.create(this.#files, segment);
  }

  async *follow(from: Position, signal: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    this.#check();
    let at = from;
    let cursor = await this.#cursorBehind(from);
    try {
      while (!signal.aborted) {
        this.#check();
        const chunk = await cursor.next(this.#maxFollowBytes);
        const last = chunk.at(-1);
        if (last !== undefined) {
          at = last.position;
          yield chunk;
        } else if (at.index === cursor.segment.end.index) {
          if (cursor.segment === this.#segments.at(-1)) {
            this.#check();
            await this.#notifier.wait(signal);
          } else {
            await cursor.close();
            cursor = await this.#cursorBehind(at);
          }
        }
      }
    } finally {
      await cursor.close();
    }
  }

  async #cursorBehind(from: Position): Promise<SegmentCursor> {
    const first = this.#segments[0]!;
    if (from.index < first.before.index) throw this.#trimmed(from);
    if (from.index > this.#end.index) {
      const what = `the log ends at entry ${this.#end.index}, before entry ${from.index} that was applied`;
      throw new EngineError('diverged', `${what}: it lost its end`);
    }
    const segment = this.#segments.findLast((candidate) => candidate.before.index <= from.index) ?? first;
    try {
      return await SegmentCursor.open(this.#files, segment, from);
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT' && !this.#segments.includes(segment)) throw this.#trimmed(from);
      throw error;
    }
  }

  async tail(): Promise<Position> {
    this.#check();
    return this.#end;
  }

  async saveSnapshot(position: Position, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    this.#check();
    if (this.#saving) throw new Error('a snapshot was begun while another one is being saved');
    if (position.index < (this.#snapshots.index ?? 0)) return;
    this.#saving = true;
    try {
      await this.#tidy(async () => {
        // A server that saves the state of another log is refused here.
        this.#checkLock();
        await (await this.#cursorBehind(position)).close();
        await this.#snapshots.save(position, chunks);
      });
    } finally {
      this.#saving = false;
    }
  }

  async loadSnapshot(): Promise<StoredSnapshot | undefined> {
    this.#check();
    return this.#snapshots.load();
  }

  async trim(index: number): Promise<void> {
    this.#check();
    await this.#tidy(() => this.#removeSegments(Math.min(index, this.#snapshots.index ?? 0)));
  }

  /** Oldest first, each removal synced before the next: after a crash the remaining segments have no gap. */
  async #removeSegments(upTo: number): Promise<void> {
    while (this.#segments.length > 1 && this.#segments[0]!.end.index <= upTo) {
      this.#checkLock();
      const segment = this.#segments.shift()!;
      try {
        await this.#files.remove(segment.path);
        await this.#files.syncFolder(this.#folder);
      } catch (error) {
        throw this.#fail(`removing ${segment.path} failed`, error);
      }
    }
  }

  sizeBytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.fileBytes, this.#snapshots.sizeBytes);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#cancelLockChecks();
    // Writes made by closing must not happen while another server holds the folder.
    this.#lookAtLock(undefined);
    this.#ended ??= new EngineError('closed', 'the log engine is closed');
    this.#notifier.notify();
    await Promise.allSettled([this.#appending, this.#tidying]);
    try {
      await (this.#ended.code === 'fatal' ? this.#writer.abandon() : this.#writer.close());
    } catch (error) {
      throw this.#fail(`closing ${this.#writer.segment.path} failed`, error);
    } finally {
      await this.#lock.release();
    }
  }

  get #end(): Position {
    return this.#writer.segment.end;
  }

  /** Snapshots and trims run one after the other, in parallel with appends. */
  #tidy(work: () => Promise<void>): Promise<void> {
    const done = this.#tidying.then(() => {
      this.#check();
      return work();
    });
    this.#tidying = done.catch(() => undefined);
    return done;
  }

  #check(): void {
    if (this.#ended !== undefined) throw this.#ended;
  }

  #checkLock(): void {
    const why = this.#lock.lostBecause();
    if (why !== undefined) throw this.#endWith(new EngineError('fatal', `${why}; ${stopHelp}`));
  }

  #lookAtLock(onLost: ((error: EngineError) => void) | undefined): void {
    if (this.#ended !== undefined) return;
    try {
      this.#checkLock();
    } catch (error) {
      if (error instanceof EngineError) onLost?.(error);
    }
  }

  /** The end of this engine: only a restart, which reads everything again, can tell what is on the disk. */
  #fail(what: string, cause: unknown): EngineError {
    const message = withHelp(`${what}: ${messageOf(cause)}; ${stopHelp}`, noRoomHelp(this.#files, this.#folder, cause));
    return this.#endWith(new EngineError('fatal', message, { cause }));
  }

  /** Throws the error that ended the engine, if any. */
  #endWith(error: EngineError): EngineError {
    if (this.#ended?.code !== 'fatal') {
      this.#ended = error;
      this.#notifier.notify();
    }
    return this.#ended;
  }

  #trimmed(from: Position): EngineError {
    const begin = this.#segments[0]!.before.index;
    const message = `entry ${from.index + 1} is gone: the log begins behind entry ${begin}, load the snapshot`;
    return new EngineError('trimmed', message);
  }
}

const stopHelp = 'the server must stop, and reads its log again when it is restarted';

function withHelp(message: string, help: string | undefined): string {
  return help === undefined ? message : `${message}; ${help}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
