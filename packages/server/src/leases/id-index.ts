/** The index is split into this many parts. A full part is moved alone, in well under a millisecond. */
const parts = 64;
const partShift = 26;
/** A bucket is the two halves of an id, then its row plus one; an empty bucket has 0 there. */
const bucketWords = 3;
const smallestBuckets = 8;

const ids = new BigInt64Array(1);
const halves = new Int32Array(ids.buffer);

/**
 * Finds the row of an id (int64) in a table. A hash table in typed arrays: with a million ids a look-up costs about one
 * cache miss and allocates nothing, where a Map of bigints follows several pointers.
 *
 * Buckets are probed in order, and at most two thirds of them are filled. A removal leaves no tombstone: the buckets
 * behind it move up. The index never shrinks.
 */
export class IdIndex {
  readonly #buckets: Int32Array[] = Array.from({ length: parts }, () => new Int32Array(smallestBuckets * bucketWords));
  readonly #sizes: number[] = Array.from({ length: parts }, () => 0);
  /** Clients choose the ids. A secret seed keeps them from choosing ids that all collide. */
  readonly #seed: number;
  #size = 0;

  constructor(seed: number) {
    this.#seed = seed | 0;
  }

  get size(): number {
    return this.#size;
  }

  /** The row of `id`, or -1. */
  find(id: bigint): number {
    ids[0] = id;
    const low = halves[0] as number;
    const high = halves[1] as number;
    const hash = hashOf(low, high, this.#seed);
    const buckets = this.#buckets[hash >>> partShift] as Int32Array;
    const mask = buckets.length / bucketWords - 1;
    for (let bucket = hash & mask; ; bucket = (bucket + 1) & mask) {
      const at = bucket * bucketWords;
      const row = (buckets[at + 2] as number) - 1;
      if (row < 0 || (buckets[at] === low && buckets[at + 1] === high)) return row;
    }
  }

  /** Adds an id that is not in the index yet. */
  add(id: bigint, row: number): void {
    ids[0] = id;
    const low = halves[0] as number;
    const high = halves[1] as number;
    const hash = hashOf(low, high, this.#seed);
    const part = hash >>> partShift;
    const size = (this.#sizes[part] as number) + 1;
    let buckets = this.#buckets[part] as Int32Array;
    // A bucket has three words, so two filled words per bucket are two thirds of the buckets.
    if (size * bucketWords * 3 > buckets.length * 2) {
      buckets = this.#doubled(buckets);
      this.#buckets[part] = buckets;
    }
    this.#sizes[part] = size;
    this.#size += 1;
    place(buckets, hash, low, high, row + 1);
  }

  /** Removes `id` and returns its row, or -1 if there is none. */
  remove(id: bigint): number {
    ids[0] = id;
    const low = halves[0] as number;
    const high = halves[1] as number;
    const hash = hashOf(low, high, this.#seed);
    const part = hash >>> partShift;
    const buckets = this.#buckets[part] as Int32Array;
    const mask = buckets.length / bucketWords - 1;
    for (let bucket = hash & mask; ; bucket = (bucket + 1) & mask) {
      const at = bucket * bucketWords;
      const row = (buckets[at + 2] as number) - 1;
      if (row < 0) return -1;
      if (buckets[at] !== low || buckets[at + 1] !== high) continue;
      this.#closeGap(buckets, bucket);
      this.#sizes[part] = (this.#sizes[part] as number) - 1;
      this.#size -= 1;
      return row;
    }
  }

  /** Moves back the entries after `gap` that a collision displaced, and leaves an empty bucket at the end. */
  #closeGap(buckets: Int32Array, gap: number): void {
    const mask = buckets.length / bucketWords - 1;
    let free = gap;
    for (let bucket = (gap + 1) & mask; ; bucket = (bucket + 1) & mask) {
      const at = bucket * bucketWords;
      if (buckets[at + 2] === 0) break;
      const wanted = hashOf(buckets[at] as number, buckets[at + 1] as number, this.#seed) & mask;
      // The entry's distance from its preferred bucket, and the distance from there to the free bucket.
      if (((bucket - wanted) & mask) < ((bucket - free) & mask)) continue;
      buckets.copyWithin(free * bucketWords, at, at + bucketWords);
      free = bucket;
    }
    buckets[free * bucketWords + 2] = 0;
  }

  #doubled(buckets: Int32Array): Int32Array {
    const doubled = new Int32Array(buckets.length * 2);
    for (let at = 0; at < buckets.length; at += bucketWords) {
      const taken = buckets[at + 2] as number;
      if (taken === 0) continue;
      const low = buckets[at] as number;
      const high = buckets[at + 1] as number;
      place(doubled, hashOf(low, high, this.#seed), low, high, taken);
    }
    return doubled;
  }
}

function place(buckets: Int32Array, hash: number, low: number, high: number, taken: number): void {
  const mask = buckets.length / bucketWords - 1;
  let bucket = hash & mask;
  while (buckets[bucket * bucketWords + 2] !== 0) bucket = (bucket + 1) & mask;
  const at = bucket * bucketWords;
  buckets[at] = low;
  buckets[at + 1] = high;
  buckets[at + 2] = taken;
}

/** 32 bits that all depend on all bits of the id. The upper bits choose the part, the lower bits the bucket. */
function hashOf(low: number, high: number, seed: number): number {
  let hash = Math.imul(low ^ seed, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15) ^ high, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
