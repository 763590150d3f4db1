import { EngineError } from '../engine-error.ts';
import type { LoggedEntry, Position } from '../log-engine.ts';
import type { FileSystem } from './file-system.ts';
import type { OpenFile } from './open-file.ts';
import { RecordReader } from './record-reader.ts';
import { segmentHeaderBytes } from './segment-format.ts';
import { signpostFor } from './segment.ts';
import type { Segment } from './segment.ts';

/**
 * Iterates over the durable entries of one segment while it may still grow. Holds its file open, so a trim does not
 * disturb it.
 */
export class SegmentCursor {
  readonly segment: Segment;
  readonly #file: OpenFile;
  readonly #reader: RecordReader;
  #offset: number;
  /** Read and verified, not returned yet. */
  #pending: readonly LoggedEntry[] = [];
  #closed = false;

  private constructor(segment: Segment, file: OpenFile, offset: number) {
    this.segment = segment;
    this.#file = file;
    this.#reader = new RecordReader(file, segment.marker);
    this.#offset = offset;
  }

  /** Starts after `from`, whose index is in the segment. Rejects with `diverged` if the hash differs. */
  static async open(files: FileSystem, segment: Segment, from: Position): Promise<SegmentCursor> {
    const file = await files.open(segment.path, 'r');
    const signpost = signpostFor(segment.signposts, from.index);
    const cursor = new SegmentCursor(segment, file, signpost?.offset ?? segmentHeaderBytes);
    try {
      await cursor.#seek(signpost?.before ?? segment.before, from);
      return cursor;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** The next entries, up to `maxBytes` together or one larger entry; none if there are no more durable ones. */
  async next(maxBytes: number): Promise<readonly LoggedEntry[]> {
    const chunk: LoggedEntry[] = [];
    let bytes = 0;
    for (;;) {
      if (this.#pending.length === 0 && !(await this.#readRecord())) return chunk;
      let taken = 0;
      for (const entry of this.#pending) {
        bytes += entry.bytes.length;
        if (bytes > maxBytes && chunk.length > 0) break;
        chunk.push(entry);
        taken++;
      }
      this.#pending = this.#pending.slice(taken);
      if (this.#pending.length > 0 || bytes >= maxBytes) return chunk;
    }
  }

  /** Idempotent: the number of a closed descriptor may be in use for another file. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#file.close();
  }

  async #seek(start: Position, from: Position): Promise<void> {
    let found = start;
    while (found.index < from.index && (await this.#readRecord())) {
      const skipped = Math.min(this.#pending.length, from.index - (this.#pending[0]?.position.index ?? 0) + 1);
      found = this.#pending[skipped - 1]?.position ?? found;
      this.#pending = this.#pending.slice(skipped);
    }
    if (found.index === from.index && found.hash === from.hash) return;
    const message = `the log in ${this.segment.path} has another entry ${from.index} than the one that was applied`;
    throw new EngineError('diverged', message);
  }

  /** Reads on; false if every durable entry has been read. */
  async #readRecord(): Promise<boolean> {
    const { path, bytes } = this.segment;
    while (this.#offset < bytes) {
      const record = await this.#reader.read(this.#offset, bytes);
      if (record === undefined) {
        const what = `${path} no longer holds at offset ${this.#offset} what was written there`;
        throw new EngineError('damaged', `${what}: stop the server and run \`tenure log verify\` on its data folder`);
      }
      this.#offset = record.endOffset;
      this.#pending = record.entries;
      if (record.entries.length > 0) return true;
    }
    return false;
  }
}
