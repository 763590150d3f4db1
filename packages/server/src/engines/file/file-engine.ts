import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Random } from '../../random/random.ts';
import { systemRandom } from '../../random/system-random.ts';
import { backgroundClock } from '../../time/background-clock.ts';
import type { Clock } from '../../time/clock.ts';
import { every } from '../../time/every.ts';
import { EngineError } from '../engine-error.ts';
import type { LogEngine, LoggedEntry, Position, StoredSnapshot } from '../log-engine.ts';
import { TailBell } from '../tail-bell.ts';
import { prepareDataFolder } from './data-folder.ts';
import { noRoomHelp } from './disk-room.ts';
import { syncFolder, systemErrorCode } from './file-system.ts';
import { lockFolder } from './folder-lock.ts';
import type { FolderLock } from './folder-lock.ts';
import { recoverLog } from './recovered-log.ts';
import type { RecoveredLog } from './recovered-log.ts';
import { SegmentCursor } from './segment-cursor.ts';
import { SegmentWriter } from './segment-writer.ts';
import type { SegmentLimits } from './segment-writer.ts';
import type { Segment } from './segment.ts';
import { SnapshotStore } from './snapshot-store.ts';

export interface FileEngineOptions {
  readonly folder: string;
  /** Appends go on in a new file once one has this size. 64 MiB by default. */
  readonly maxSegmentBytes?: number;
  /** Room that is written ahead of the log; 0 for none. 1 MiB by default. */
  readonly preallocateBytes?: number;
  /** A followed chunk holds no more bytes than this, except that it holds at least one entry. 1 MiB by default. */
  readonly maxFollowBytes?: number;
  /** For the looks at the lock; by default one whose timers keep no process alive. */
  readonly clock?: Clock;
  /** For what marks the segments; that of the process by default. */
  readonly random?: Random;
  /** Told what opening has put in order, for the operator's log. */
  readonly onNotice?: (notice: string) => void;
  /** Told once when the folder may have passed to another server, while nothing was asked of this engine. */
  readonly onLockLost?: (error: EngineError) => void;
}

/**
 * How often the lock is looked at beside the looks before and after each write: what is answered from memory alone is
 * wrong for this long at most.
 */
const lockCheckIntervalMs = 200;

/**
 * Opens the log in a folder of this machine, which is made if need be, and holds it until `close` or the end of the
 * process. Rejects with EngineError `locked`, `damaged` or `unusable`, and then nothing was changed; or with `fatal`
 * when the disk fails.
 */
export async function openFileEngine(options: FileEngineOptions): Promise<LogEngine> {
  const folder = resolve(options.folder);
  const { random = systemRandom, onNotice = () => undefined } = options;
  const limits: SegmentLimits = {
    maxSegmentBytes: options.maxSegmentBytes ?? 64 * 1024 * 1024,
    preallocateBytes: options.preallocateBytes ?? 1024 * 1024,
  };
  prepareDataFolder(folder);
  const lock = await lockFolder(folder);
  try {
    const log = await recoverLog(folder, limits, { random, onNotice });
    return new FileEngine(folder, limits, options, lock, log);
  } catch (error) {
    await lock.release();
    if (error instanceof EngineError) throw error;
    const message = `opening the log in ${folder} failed: ${messageOf(error)}`;
    throw new EngineError('fatal', withHelp(message, noRoomHelp(folder, error)), { cause: error });
  }
}

class FileEngine implements LogEngine {
  readonly name = 'file';
  readonly isShared = false;
  readonly #folder: string;
  readonly #limits: SegmentLimits;
  readonly #maxFollowBytes: number;
  readonly #lock: FolderLock;
  readonly #random: Random;
  readonly #cancelLockChecks: () => void;
  /** Ascending and without gaps; the last one is the writer's. */
  readonly #segments: Segment[];
  #writer: SegmentWriter;
  readonly #snapshots: SnapshotStore;
  readonly #bell = new TailBell();
  /** What is being written now, so that close can wait for it. */
  #appending: Promise<Position> | undefined;
  #tidying: Promise<void> = Promise.resolve();
  #saving = false;
  /** Why nothing is answered any more. */
  #ended: EngineError | undefined;
  #closing: Promise<void> | undefined;

  constructor(folder: string, limits: SegmentLimits, options: FileEngineOptions, lock: FolderLock, log: RecoveredLog) {
    const { maxFollowBytes = 1024 * 1024, clock = backgroundClock, random = systemRandom, onLockLost } = options;
    this.#folder = folder;
    this.#limits = limits;
    this.#maxFollowBytes = maxFollowBytes;
    this.#lock = lock;
    this.#random = random;
    this.#cancelLockChecks = every(clock, lockCheckIntervalMs, () => this.#lookAtLock(onLockLost));
    this.#segments = log.segments;
    this.#writer = log.writer;
    this.#snapshots = new SnapshotStore(folder, log.snapshot, {
      check: () => this.#check(),
      fail: (what, cause) => this.#fail(what, cause),
    });
  }

  async append(batch: readonly Uint8Array[], after: Position): Promise<Position> {
    this.#check();
    if (this.#appending !== undefined) throw new Error('an append was begun while another one is out');
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
      this.#bell.ring();
    }
  }

  /**
   * The lock is looked at again behind the sync. If it is there, a server that takes the folder later finds the entry;
   * if it is not, another may have read the log before the entry was in it, and it must not be acknowledged.
   */
  async #write(batch: readonly Uint8Array[]): Promise<Position> {
    this.#checkLock();
    if (this.#writer.isFull) await this.#rotate();
    await this.#writer.append(batch);
    this.#checkLock();
    return this.#writer.segment.end;
  }

  /**
   * The new segment is on the disk before the old one names it, so that a last segment that was sealed proves a
   * missing one.
   */
  async #rotate(): Promise<void> {
    const full = this.#writer;
    this.#writer = await SegmentWriter.create(this.#folder, full.segment.end, this.#limits, this.#random);
    await full.seal();
    this.#segments.push(this.#writer.segment);
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
            await this.#bell.wait(signal);
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
      return await SegmentCursor.open(segment, from);
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
        // Whoever saves the state of another log learns it here.
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

  /** Oldest first, each gone for good before the next: after a crash the rest is without gaps. */
  async #removeSegments(upTo: number): Promise<void> {
    while (this.#segments.length > 1 && this.#segments[0]!.end.index <= upTo) {
      this.#checkLock();
      const segment = this.#segments.shift()!;
      try {
        await rm(segment.path);
        await syncFolder(this.#folder);
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
    // What closing writes into the folder must not meet another server there.
    this.#lookAtLock(undefined);
    this.#ended ??= new EngineError('closed', 'the log engine is closed');
    this.#bell.ring();
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

  /** Snapshots and trims run one after the other, beside the appends. */
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

  /** The end of this engine: only a restart, which reads everything anew, can tell what the disk holds. */
  #fail(what: string, cause: unknown): EngineError {
    const message = withHelp(`${what}: ${messageOf(cause)}; ${stopHelp}`, noRoomHelp(this.#folder, cause));
    return this.#endWith(new EngineError('fatal', message, { cause }));
  }

  /** Gives what ended it first. */
  #endWith(error: EngineError): EngineError {
    if (this.#ended?.code !== 'fatal') {
      this.#ended = error;
      this.#bell.ring();
    }
    return this.#ended;
  }

  #trimmed(from: Position): EngineError {
    const begin = this.#segments[0]!.before.index;
    const message = `entry ${from.index + 1} is gone: the log begins behind entry ${begin}, load the snapshot`;
    return new EngineError('trimmed', message);
  }
}

const stopHelp = 'the server must stop, and when it is started it reads its log anew';

function withHelp(message: string, help: string | undefined): string {
  return help === undefined ? message : `${message}; ${help}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
