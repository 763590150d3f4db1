import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../random/random.ts';
import type { Position } from '../log-engine.ts';
import { isRefusedForRoom } from './disk-room.ts';
import { closeFile, openFile, syncData, syncFolder, truncateFile, writeFully } from './file-system.ts';
import { segmentName, temporaryName } from './file-names.ts';
import { encodeBatch, encodeMark, encodeSegmentHeader, newMarker } from './segment-format.ts';
import { payloadBytesOf, recordHeaderBytes, segmentHeaderBytes } from './segment-format.ts';
import { setSignpost } from './segment.ts';
import type { Segment } from './segment.ts';

export interface SegmentLimits {
  /** No append begins in a segment of this size or more. */
  readonly maxSegmentBytes: number;
  /**
   * When a segment is full to its end, so many zeros are written behind the record. The syncs that follow then have
   * no new length and no new blocks to bring to the disk, only the record: measured on ext4, a third to a half less
   * time for each.
   */
  readonly preallocateBytes: number;
}

/** More than this in one append is a mistake of the caller: all of it is in memory several times. */
const maxBatchBytes = 1024 * 1024 * 1024;
/** A buffer of up to this size is kept from append to append. */
const keptBufferBytes = 4 * 1024 * 1024;

/** The one writer of the last segment. After any of its promises has rejected it must not be used again. */
export class SegmentWriter {
  readonly segment: Segment;
  readonly #fd: number;
  readonly #limits: SegmentLimits;
  #buffer = Buffer.allocUnsafeSlow(64 * 1024);
  /** Whether the last record is a batch. */
  #unmarked = false;
  /** Whether the disk has refused room ahead in this segment. */
  #aheadRefused = false;

  constructor(segment: Segment, fd: number, limits: SegmentLimits) {
    this.segment = segment;
    this.#fd = fd;
    this.#limits = limits;
  }

  /** Makes an empty segment behind `before`. File and folder are on the disk before it resolves. */
  static async create(folder: string, before: Position, limits: SegmentLimits, random: Random): Promise<SegmentWriter> {
    const path = join(folder, segmentName(before.index + 1));
    const marker = newMarker(random);
    const header = encodeSegmentHeader(marker, before);
    const fd = await openFile(temporaryName(path), 'w+');
    await writeFully(fd, header, header.length, 0);
    await syncData(fd);
    await rename(temporaryName(path), path);
    await syncFolder(folder);
    const bytes = segmentHeaderBytes;
    return new SegmentWriter({ path, marker, before, end: before, bytes, fileBytes: bytes, signposts: [] }, fd, limits);
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
   * Says in the log that all before has reached the disk; with `sealed`, also that the log goes on in another
   * segment.
   */
  async mark(kind: 'synced' | 'sealed'): Promise<void> {
    await this.#write(encodeMark(kind, this.segment.marker, this.segment.end), recordHeaderBytes);
    this.#unmarked = false;
  }

  /** Closes the file for good: the log goes on in another one. The room that is left goes back to the disk. */
  async seal(): Promise<void> {
    const { segment } = this;
    await this.mark('sealed');
    await truncateFile(this.#fd, segment.bytes);
    segment.fileBytes = segment.bytes;
    await closeFile(this.#fd);
  }

  /** Ends the log for now: what is damaged from here on cannot be taken for an append that did not finish. */
  async close(): Promise<void> {
    if (this.#unmarked) await this.mark('synced');
    await closeFile(this.#fd);
  }

  /** Lets go of the file without another write. */
  abandon(): Promise<void> {
    return closeFile(this.#fd);
  }

  async #write(buffer: Buffer, length: number): Promise<void> {
    const { segment } = this;
    const recordEnd = segment.bytes + length;
    if (recordEnd > segment.fileBytes) await this.#extend(recordEnd);
    await writeFully(this.#fd, buffer, length, segment.bytes);
    await syncData(this.#fd);
    segment.bytes = recordEnd;
  }

  /** Room ahead is worth having, not needed: on a disk that is nearly full the record is written without it. */
  async #extend(recordEnd: number): Promise<void> {
    const { maxSegmentBytes, preallocateBytes } = this.#limits;
    const zeros = this.#aheadRefused ? 0 : Math.max(0, Math.min(preallocateBytes, maxSegmentBytes - recordEnd));
    try {
      await writeFully(this.#fd, Buffer.alloc(zeros), zeros, recordEnd);
      this.segment.fileBytes = recordEnd + zeros;
    } catch (error) {
      if (!isRefusedForRoom(error)) throw error;
      this.#aheadRefused = true;
      // What was taken for it is given back: it lies behind a gap that the record has yet to fill.
      await truncateFile(this.#fd, this.segment.fileBytes);
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
