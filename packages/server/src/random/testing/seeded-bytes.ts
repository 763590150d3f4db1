import { createHash } from 'node:crypto';
import type { Random } from '../random.ts';

/** Numbers that look random and are a function of the seed alone. */
export class SeededBytes implements Random {
  readonly #seed: string;
  #drawn = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  bytes(count: number): Buffer {
    this.#drawn += 1;
    const drawn = createHash('shake256', { outputLength: count }).update(`${this.#seed} ${this.#drawn}`);
    return drawn.digest();
  }

  fraction(): number {
    return this.bytes(4).readUInt32LE() / 2 ** 32;
  }
}
