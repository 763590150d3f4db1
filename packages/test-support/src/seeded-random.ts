/** Pseudo-random numbers that depend only on the seed (mulberry32): the same on every machine. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1) ^ 0x85ebca6b;
  }

  /** At least 0 and below 1. */
  next(): number {
    return this.uint32() / 2 ** 32;
  }

  uint32(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** Any number from `low` up to, and not including, `high`: a time or a rate. */
  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** A whole number from 0 up to, and not including, `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of the choices, of which there is at least one. */
  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  bytes(count: number): Buffer {
    return Buffer.from(Uint8Array.from({ length: count }, () => this.below(256)));
  }

  /** The bytes after random damage: some changed, lost, doubled, inserted or truncated. Sometimes nothing is left. */
  damage(bytes: Buffer): Buffer {
    const at = this.integer(0, bytes.length);
    const to = Math.min(bytes.length, at + this.integer(1, 8));
    const kind = this.below(6);
    if (kind === 0) return bytes.subarray(0, at);
    if (kind === 1) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)]);
    if (kind === 2) return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)]);
    if (kind === 3) return Buffer.concat([bytes.subarray(0, at), this.bytes(this.integer(1, 16)), bytes.subarray(at)]);
    if (kind === 4) return this.bytes(this.integer(0, 40));
    const changed = Buffer.from(bytes);
    // Boundary values of varints and flags occur more often than by chance.
    for (let i = at; i < to; i++) changed[i] = this.pick([0, 0x7f, 0x80, 0xff, this.below(256)]);
    return changed;
  }

  /** A separate generator, so that the random choices of one part do not shift those of another. */
  split(): SeededRandom {
    return new SeededRandom(this.uint32());
  }
}
