import type { KeyValue } from './kv-types.ts';

/** Revisions per chunk. A chunk is what compaction frees at once. */
const chunkRevisions = 512;

/** The changes of revisions number * chunkRevisions and following, in order, and the rolling hash after each. */
export class RevisionChunk {
  readonly number: number;
  readonly changes: (KeyValue | undefined)[] = [];
  /** Beside each change, the pair before it: see pairBefore. */
  readonly replaced: (KeyValue | undefined)[] = [];
  readonly #hashes = new Uint32Array(chunkRevisions);
  /** Where the changes of the n-th revision begin; they end where the next ones begin. */
  readonly #starts = new Uint32Array(chunkRevisions + 1);

  constructor(number: number) {
    this.number = number;
  }

  /** Ends `revision`: what was recorded since the one before belongs to it. */
  seal(revision: number, hash: number): void {
    const slot = revision % chunkRevisions;
    this.#starts[slot + 1] = this.changes.length;
    this.#hashes[slot] = hash;
  }

  startOf(revision: number): number {
    return this.#starts[revision % chunkRevisions]!;
  }

  endOf(revision: number): number {
    return this.#starts[(revision % chunkRevisions) + 1]!;
  }

  hashOf(revision: number): number {
    return this.#hashes[revision % chunkRevisions]!;
  }

  /** Lets go of the versions of all revisions below `revision`, and of what the changes of `revision` replaced. */
  forgetBelow(revision: number): void {
    this.changes.fill(undefined, 0, this.startOf(revision));
    this.replaced.fill(undefined, 0, this.endOf(revision));
  }
}

export function chunkNumber(revision: number): number {
  return Math.floor(revision / chunkRevisions);
}
