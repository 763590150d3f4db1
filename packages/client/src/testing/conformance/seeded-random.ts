/** Numbers that follow from a seed and a word: the same ones for the same two. */
export class SeededRandom {
  #state: number;

  constructor(seed: number, word: string) {
    this.#state = seed | 0;
    for (const letter of word) this.#state = Math.imul(this.#state ^ (letter.codePointAt(0) ?? 0), 0x01_00_01_93);
  }

  /** From 0 to `limit - 1`. This is mulberry32. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  }
}
