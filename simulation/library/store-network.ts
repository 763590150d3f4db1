import type { SeededRandom } from '@tenure/test-support';

/** How the way from the clients to the store is at the moment. Faults change it. */
export class StoreNetwork {
  /** Nothing reaches the store. */
  isDown = false;
  lossChance = 0;
  /** The share of messages that take long. */
  slowChance = 0;
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  heal(): void {
    this.isDown = false;
    this.lossChance = 0;
    this.slowChance = 0;
  }

  delayMs(): number {
    if (this.slowChance > 0 && this.#random.chance(this.slowChance)) return this.#random.between(20, 500);
    return this.#random.between(0.2, 3);
  }

  loses(): boolean {
    return this.lossChance > 0 && this.#random.chance(this.lossChance);
  }

  /** A connection that breaks is noticed by its client mostly at once, and sometimes not at all. */
  isNoticed(): boolean {
    return this.#random.chance(0.5);
  }
}

/** The longest delay of one message. */
export const longestDelayMs = 500;
