/** A small repeatable source of randomness (xorshift32): the same seed gives the same inputs on every machine. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    // Neighbouring seeds are spread apart first, and zero, which would stay zero, is avoided.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0 || 1;
    for (let i = 0; i < 8; i++) this.uint32();
  }

  uint32(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }

  /** A whole number from 0 up to, and not including, `end`. */
  below(end: number): number {
    return this.uint32() % end;
  }

  chance(probability: number): boolean {
    return this.uint32() < probability * 2 ** 32;
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }

  bytes(count: number): Buffer {
    const bytes = Buffer.alloc(count);
    for (let i = 0; i < count; i++) bytes[i] = this.below(256);
    return bytes;
  }

  /** The bytes with some of them changed, lost, doubled or cut off. */
  damage(bytes: Buffer): Buffer {
    const at = this.below(bytes.length + 1);
    const to = Math.min(bytes.length, at + 1 + this.below(8));
    const kind = this.below(5);
    if (kind === 0) return bytes.subarray(0, at);
    if (kind === 1) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)]);
    if (kind === 2) return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)]);
    if (kind === 3) return Buffer.concat([bytes.subarray(0, at), this.bytes(1 + this.below(16)), bytes.subarray(at)]);
    const changed = Buffer.from(bytes);
    for (let i = at; i < to; i++) changed[i] = this.below(256);
    return changed;
  }
}
