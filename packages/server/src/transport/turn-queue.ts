/**
 * Entries of the order that may belong to nobody any more before it is cleaned, beside as many as there are
 * members.
 */
const maxStale = 64;

/**
 * Those who wait for their turn, first come first served, each once. Every operation takes constant time on
 * average: a Set alone would not do, since finding its first member means walking past the places of all that have
 * left.
 */
export class TurnQueue<Member> {
  readonly #members = new Set<Member>();
  /** The members in order, with entries in between of some that have left. */
  #order: Member[] = [];
  #next = 0;

  get size(): number {
    return this.#members.size;
  }

  /** Those who wait, in no order that means anything. */
  [Symbol.iterator](): IterableIterator<Member> {
    return this.#members.values();
  }

  /** Does nothing for one that waits already. */
  push(member: Member): void {
    if (this.#members.has(member)) return;
    this.#members.add(member);
    this.#order.push(member);
    if (this.#order.length > 2 * this.#members.size + maxStale) this.#clean();
  }

  /** The one whose turn is next; it stays. */
  get first(): Member | undefined {
    while (this.#next < this.#order.length) {
      const member = this.#order[this.#next]!;
      if (this.#members.has(member)) return member;
      this.#next += 1;
    }
    return undefined;
  }

  shift(): Member | undefined {
    while (this.#next < this.#order.length) {
      const member = this.#order[this.#next]!;
      this.#next += 1;
      if (this.#members.delete(member)) return member;
    }
    return undefined;
  }

  /** Does nothing for one that does not wait. */
  delete(member: Member): void {
    this.#members.delete(member);
  }

  clear(): void {
    this.#members.clear();
    this.#order = [];
    this.#next = 0;
  }

  /** A Set remembers who came first, and one that left and came again has its place at the end. */
  #clean(): void {
    this.#order = Array.from(this.#members);
    this.#next = 0;
  }
}
