import type { KeyValue, KvEvent } from './kv-types.ts';
import { isTombstone } from './key-entry.ts';
import { RevisionChunk, chunkNumber } from './revision-chunk.ts';
import { hashKeyValue } from './rolling-hash.ts';

/** The revision of an empty store. */
export const firstRevision = 1;

/**
 * The history, in chunks. Changes are recorded one by one and become one revision with `seal`; until then they are not
 * visible here.
 */
export class RevisionLog {
  readonly #chunks: RevisionChunk[];
  #currentRevision: number;
  #compactRevision: number;
  #hash = 0;
  #pending = 0;

  /** Its oldest revision is still open: record its changes, then call `sealOldest`. */
  constructor(compactRevision: number) {
    const oldest = Math.max(compactRevision, firstRevision);
    this.#compactRevision = compactRevision;
    this.#currentRevision = oldest - 1;
    this.#chunks = [new RevisionChunk(chunkNumber(oldest))];
  }

  /** The log of a new store: one revision without changes. */
  static empty(): RevisionLog {
    const log = new RevisionLog(-1);
    log.sealOldest(0);
    return log;
  }

  /** `hash` is the rolling hash of that revision, which also covers changes that are no longer held. */
  sealOldest(hash: number): void {
    this.#hash = hash;
    this.#pending = 0;
    this.#currentRevision++;
    this.#chunks[0]!.seal(this.#currentRevision, hash);
  }

  get currentRevision(): number {
    return this.#currentRevision;
  }

  get compactRevision(): number {
    return this.#compactRevision;
  }

  /** The oldest readable revision. */
  get firstHeldRevision(): number {
    return Math.max(this.#compactRevision, firstRevision);
  }

  /** The number of changes recorded since the last `seal`. */
  get pending(): number {
    return this.#pending;
  }

  record(change: KeyValue, replaced: KeyValue | undefined): void {
    const chunk = this.#openChunk();
    chunk.changes.push(change);
    chunk.replaced.push(replaced);
    this.#hash = hashKeyValue(this.#hash, change);
    this.#pending++;
  }

  /** Makes the recorded changes one revision and returns its number. Without changes there is no new revision. */
  seal(): number {
    if (this.#pending === 0) return this.#currentRevision;
    const chunk = this.#openChunk();
    this.#currentRevision++;
    this.#pending = 0;
    chunk.seal(this.#currentRevision, this.#hash);
    return this.#currentRevision;
  }

  eventsAt(revision: number): readonly KvEvent[] {
    this.#checkHeld(revision);
    const chunk = this.#chunkOf(revision);
    const events: KvEvent[] = [];
    const end = chunk.endOf(revision);
    for (let i = chunk.startOf(revision); i < end; i++) {
      const kv = chunk.changes[i]!;
      const prevKv = revision === this.#compactRevision ? undefined : chunk.replaced[i];
      events.push({ type: isTombstone(kv) ? 'delete' : 'put', kv, prevKv });
    }
    return events;
  }

  /** Unsigned, over every change up to and including `revision`, compacted ones too. */
  hashAt(revision: number): number {
    this.#checkHeld(revision);
    return this.#chunkOf(revision).hashOf(revision);
  }

  countAt(revision: number): number {
    const chunk = this.#chunkOf(revision);
    return chunk.endOf(revision) - chunk.startOf(revision);
  }

  changeAt(revision: number, position: number): KeyValue {
    const chunk = this.#chunkOf(revision);
    return chunk.changes[chunk.startOf(revision) + position]!;
  }

  /** Hides the revisions below; `forgetBelow` frees their memory. */
  compact(revision: number): void {
    this.#compactRevision = revision;
  }

  /** Frees the chunks hidden by a compaction at `revision`. */
  forgetBelow(revision: number): void {
    const oldest = Math.max(revision, firstRevision);
    const hidden = chunkNumber(oldest) - this.#chunks[0]!.number;
    if (hidden > 0) this.#chunks.splice(0, hidden);
    this.#chunks[0]!.forgetBelow(oldest);
  }

  #checkHeld(revision: number): void {
    if (revision > this.#currentRevision || revision < this.firstHeldRevision) {
      throw new Error(
        `history: revision ${revision} is outside ${this.firstHeldRevision}..${this.#currentRevision}; ` +
          'a reader must compare with compactRevision before it asks',
      );
    }
  }

  #chunkOf(revision: number): RevisionChunk {
    return this.#chunks[chunkNumber(revision) - this.#chunks[0]!.number]!;
  }

  /** The chunk of the revision being recorded. */
  #openChunk(): RevisionChunk {
    const last = this.#chunks[this.#chunks.length - 1]!;
    const number = chunkNumber(this.#currentRevision + 1);
    if (last.number === number) return last;
    const chunk = new RevisionChunk(number);
    this.#chunks.push(chunk);
    return chunk;
  }
}
