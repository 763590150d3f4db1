import type { OpenFile } from './open-file.ts';
import { decodePayload, decodeRecordHeader, recordHeaderBytes } from './segment-format.ts';
import type { RecordHeader } from './segment-format.ts';
import type { LoggedEntry } from '../log-engine.ts';

/** Bytes read from the file at a time, unless a record is larger. */
const windowBytes = 256 * 1024;

export interface SegmentRecord {
  readonly header: RecordHeader;
  /** Verified against the header. Views of the read buffer, which does not change. */
  readonly entries: readonly LoggedEntry[];
  readonly offset: number;
  readonly endOffset: number;
}

/**
 * Reads the records of one segment from an open file, through a window so that small records do not cost one call each.
 */
export class RecordReader {
  readonly #file: OpenFile;
  readonly #marker: Buffer;
  #window = Buffer.alloc(0);
  #windowOffset = 0;

  constructor(file: OpenFile, marker: Buffer) {
    this.#file = file;
    this.#marker = marker;
  }

  /** The record at `offset`, or undefined if no complete and valid record ends at or before `limit`. */
  async read(offset: number, limit: number): Promise<SegmentRecord | undefined> {
    const head = await this.#bytes(offset, recordHeaderBytes, limit);
    const header = head && decodeRecordHeader(head, this.#marker);
    if (header === undefined) return undefined;
    const payloadOffset = offset + recordHeaderBytes;
    const payload = await this.#bytes(payloadOffset, header.payloadBytes, limit);
    const entries = payload && decodePayload(header, payload, this.#marker);
    return entries && { header, entries, offset, endOffset: payloadOffset + header.payloadBytes };
  }

  async #bytes(offset: number, length: number, limit: number): Promise<Buffer | undefined> {
    if (offset + length > limit) return undefined;
    let start = offset - this.#windowOffset;
    if (start < 0 || start + length > this.#window.length) {
      // A new buffer each time: the returned entries are views of the old one.
      const window = Buffer.allocUnsafeSlow(Math.min(Math.max(windowBytes, length), limit - offset));
      const read = await this.#file.readFully(window, offset);
      this.#window = window.subarray(0, read);
      this.#windowOffset = offset;
      start = 0;
      if (read < length) return undefined;
    }
    return this.#window.subarray(start, start + length);
  }
}
