import type { SeededRandom } from '@tenure/test-support';
import type { Random } from '../../packages/client/src/random/random.ts';

/** The random values of the library, from the seed. */
export class SeededValues implements Random {
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  uuid(): string {
    return `${this.#hex()}-${this.#hex()}`;
  }

  uint64(): bigint {
    return (BigInt(this.#random.uint32()) << 32n) | BigInt(this.#random.uint32());
  }

  #hex(): string {
    return this.#random.uint32().toString(16).padStart(8, '0');
  }
}
