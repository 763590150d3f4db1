/**
 * The number of entries of removed members, in excess of the number of members, that may remain before the order is
 * cleaned up.
 */
const maxStale = 64;

/**
 * A queue of unique members, first come, first served. Every operation takes constant time on average: a Set alone
 * would not do, since finding its first member walks past the slots of all removed ones.
 */
export class TurnQueue<Member> {
  readonly #members = new Set<Member>();
  /** The members in order, interspersed with entries of removed ones. */
  #order: Member[] = [];
  #next = 0;

  get size(): number {
    return this.#members.size;
  }

  /** The members, unordered. */
  [Symbol.iterator](): IterableIterator<Member> {
    return this.#members.values();
  }

  /** Does nothing for a member that is already queued. */
  push(member: Member): void {
    if (this.#members.has(member)) return;
    this.#members.add(member);
    this.#order.push(member);
    if (this.#order.length > 2 * this.#members.size + maxStale) this.#clean();
  }

  /** The next member; it stays queued. */
  get first(): Member | undefined {
    while (this.#next < this.#order.length) {
      const member = this.#order[this.#next]!;
      if (this.#members.has(member)) return member;
      this.#next += 1;
    }
    return undefined;
  }

  /** The member that was queued last. Takes time for each member. */
  get last(): Member | undefined {
    let last: Member | undefined;
    for (const member of this.#members) last = member;
    return last;
  }

  shift(): Member | undefined {
    while (this.#next < this.#order.length) {
      const member = this.#order[this.#next]!;
      this.#next += 1;
      if (this.#members.delete(member)) return member;
    }
    return undefined;
  }

  /** Does nothing for one that is not queued. */
  delete(member: Member): void {
    this.#members.delete(member);
  }

  clear(): void {
    this.#members.clear();
    this.#order = [];
    this.#next = 0;
  }

  /** A Set keeps insertion order, and a member that was removed and added again is last. */
  #clean(): void {
    this.#order = Array.from(this.#members);
    this.#next = 0;
  }
}
