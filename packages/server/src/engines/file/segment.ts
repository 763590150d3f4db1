import type { Position } from '../log-engine.ts';

/** One file of the log, as known to this process. Everything up to `end` and `bytes` is on the disk. */
export interface Segment {
  readonly path: string;
  readonly marker: Buffer;
  /** Directly before the first entry. */
  readonly before: Position;
  /** Behind the last entry. */
  end: Position;
  /** Where the last record ends. */
  bytes: number;
  /** The length of the file: after `bytes` it holds zeros. */
  fileBytes: number;
  /** The offsets of some records, ascending: enough to find any entry without reading far. */
  readonly signposts: Signpost[];
}

export interface Signpost {
  /** Directly before the record. */
  readonly before: Position;
  readonly offset: number;
}

/** An offset is kept for the first record and then at least this far from the one before it. */
const signpostSpacingBytes = 64 * 1024;

/** Remembers the offset of the record after `before`, unless another one is near. */
export function setSignpost(signposts: Signpost[], before: Position, offset: number): void {
  const last = signposts.at(-1);
  if (last === undefined || offset - last.offset >= signpostSpacingBytes) signposts.push({ before, offset });
}

/**
 * The last remembered offset from which reading forward reaches the entry after `index`; undefined in a segment without
 * records.
 */
export function signpostFor(signposts: readonly Signpost[], index: number): Signpost | undefined {
  let low = 0;
  let high = signposts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (signposts[middle]!.before.index <= index) low = middle + 1;
    else high = middle;
  }
  return signposts[low - 1];
}
