import { join } from 'node:path';
import type { Random } from '../../random/random.ts';
import type { Position } from '../log-engine.ts';
import { isRefusedForRoom } from './disk-room.ts';
import type { FileSystem } from './file-system.ts';
import type { OpenFile } from './open-file.ts';
import { segmentName, temporaryName } from './file-names.ts';
import { encodeBatch, encodeMark, encodeSegmentHeader, newMarker } from './segment-format.ts';
import { payloadBytesOf, recordHeaderBytes, segmentHeaderBytes } from './segment-format.ts';
import { setSignpost } from './segment.ts';
import type { Segment } from './segment.ts';

export interface SegmentLimits {
  /** No append begins in a segment of this size or more. */
  readonly maxSegmentBytes: number;
  /**
   * When a segment has no room left, this many zeros are written after the record. The following syncs then write no
   * new length and no new blocks, only the record: measured on ext4, each takes a third to a half less time.
   */
  readonly preallocateBytes: number;
}

export interface NewSegment {
  readonly folder: string;
  /** Directly before its first entry. */
  readonly before: Position;
  readonly limits: SegmentLimits;
  /** For its marker. */
  readonly random: Random;
}

/** A larger append is a bug of the caller: all of it is in memory several times. */
const maxBatchBytes = 1024 * 1024 * 1024;
/** A buffer of up to this size is reused for the next append. */
const keptBufferBytes = 4 * 1024 * 1024;

/** The only writer of the last segment. After any of its promises has rejected it must not be used again. */
export class SegmentWriter {
  readonly segment: Segment;
  readonly #file: OpenFile;
  readonly #limits: SegmentLimits;
  #buffer = Buffer.allocUnsafeSlow(64 * 1024);
  /** Whether the last record is a batch. */
  #unmarked = false;
  /** Whether the disk has refused room ahead in this segment. */
  #aheadRefused = false;

  constructor(segment: Segment, file: OpenFile, limits: SegmentLimits) {
    this.segment = segment;
    this.#file = file;
    this.#limits = limits;
  }

  /** Creates an empty segment after `before`. File and folder are on the disk before it resolves. */
  static async create(files: FileSystem, { folder, before, limits, random }: NewSegment): Promise<SegmentWriter> {
    const path = join(folder, segmentName(before.index + 1));
    const marker = newMarker(random);
    const header = encodeSegmentHeader(marker, before);
    const file = await files.open(temporaryName(path), 'w+');
    await file.writeFully(header, header.length, 0);
    await file.syncData();
    await files.rename(temporaryName(path), path);
    await files.syncFolder(folder);
    const bytes = segmentHeaderBytes;
    return new SegmentWriter(
      { path, marker, before, end: before, bytes, fileBytes: bytes, signposts: [] },
      file,
      limits,
    );
  }

  /** Whether an append fits in one record. */
  static fits(batch: readonly Uint8Array[]): boolean {
    return payloadBytesOf(batch) <= maxBatchBytes;
  }

  get isFull(): boolean {
    return this.segment.bytes >= this.#limits.maxSegmentBytes;
  }

  /** Writes the batch and waits until it is on the disk. */
  async append(batch: readonly Uint8Array[]): Promise<void> {
    const { segment } = this;
    const recordBytes = recordHeaderBytes + payloadBytesOf(batch);
    const buffer = this.#room(recordBytes);
    const end = encodeBatch(buffer, segment.marker, batch, segment.end);
    const offset = segment.bytes;
    await this.#write(buffer, recordBytes);
    setSignpost(segment.signposts, segment.end, offset);
    segment.end = end;
    this.#unmarked = true;
  }

  /**
   * Records in the log that everything before it is on the disk; with `sealed`, also that the log continues in another
   * segment.
   */
  async mark(kind: 'synced' | 'sealed'): Promise<void> {
    await this.#write(encodeMark(kind, this.segment.marker, this.segment.end), recordHeaderBytes);
    this.#unmarked = false;
  }

  /** Closes the file: the log continues in another one. Preallocated room is given back to the disk. */
  async seal(): Promise<void> {
    const { segment } = this;
    await this.mark('sealed');
    await this.#file.truncate(segment.bytes);
    segment.fileBytes = segment.bytes;
    await this.#file.close();
  }

  /** Ends the log for now: later damage cannot be mistaken for an unfinished append. */
  async close(): Promise<void> {
    if (this.#unmarked) await this.mark('synced');
    await this.#file.close();
  }

  /** Closes the file without another write. */
  abandon(): Promise<void> {
    return this.#file.close();
  }

  async #write(buffer: Buffer, length: number): Promise<void> {
    const { segment } = this;
    const recordEnd = segment.bytes + length;
    if (recordEnd > segment.fileBytes) await this.#extend(recordEnd);
    await this.#file.writeFully(buffer, length, segment.bytes);
    await this.#file.syncData();
    segment.bytes = recordEnd;
  }

  /** Preallocation is optional: on a nearly full disk the record is written without it. */
  async #extend(recordEnd: number): Promise<void> {
    const { maxSegmentBytes, preallocateBytes } = this.#limits;
    const zeros = this.#aheadRefused ? 0 : Math.max(0, Math.min(preallocateBytes, maxSegmentBytes - recordEnd));
    try {
      await this.#file.writeFully(Buffer.alloc(zeros), zeros, recordEnd);
      this.segment.fileBytes = recordEnd + zeros;
    } catch (error) {
      if (!isRefusedForRoom(error)) throw error;
      this.#aheadRefused = true;
      // The preallocated room is given back: it lies after a gap that the record has yet to fill.
      await this.#file.truncate(this.segment.fileBytes);
      this.segment.fileBytes = recordEnd;
    }
  }

  #room(bytes: number): Buffer {
    if (bytes <= this.#buffer.length) return this.#buffer;
    const buffer = Buffer.allocUnsafeSlow(bytes > keptBufferBytes ? bytes : Math.min(keptBufferBytes, 2 * bytes));
    if (buffer.length <= keptBufferBytes) this.#buffer = buffer;
    return buffer;
  }
}
