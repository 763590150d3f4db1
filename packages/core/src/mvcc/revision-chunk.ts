import type { KeyValue } from './kv-types.ts';

/** Revisions per chunk. A compaction frees whole chunks. */
const chunkRevisions = 512;

/** The changes of the revisions from number * chunkRevisions on, in order, and the rolling hash after each revision. */
export class RevisionChunk {
  readonly number: number;
  readonly changes: (KeyValue | undefined)[] = [];
  /** For each change, the previous pair: see pairBefore. */
  readonly replaced: (KeyValue | undefined)[] = [];
  readonly #hashes = new Uint32Array(chunkRevisions);
  /** Where the changes of the n-th revision begin; they end where the next revision begins. */
  readonly #starts = new Uint32Array(chunkRevisions + 1);

  constructor(number: number) {
    this.number = number;
  }

  /** Ends `revision`: the changes recorded since the previous revision belong to it. */
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

  /** Drops the versions of all revisions below `revision`, and the previous pairs of the changes of `revision`. */
  forgetBelow(revision: number): void {
    this.changes.fill(undefined, 0, this.startOf(revision));
    this.replaced.fill(undefined, 0, this.endOf(revision));
  }
}

export function chunkNumber(revision: number): number {
  return Math.floor(revision / chunkRevisions);
}
