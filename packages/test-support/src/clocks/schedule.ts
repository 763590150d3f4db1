interface Happening {
  readonly atMs: number;
  readonly order: number;
  readonly happen: () => void;
}

/**
 * So many turns of the queue of promises lie between two happenings: more than any chain of awaits here takes (18 were
 * measured; more change nothing). A turn of the event loop would let all settle as well, and costs more.
 */
const promiseTurns = 20;
const settled = Promise.resolve();

/**
 * The one true time of a simulated cluster, and everything that will happen in it, in order. Between two happenings
 * all promises settle, so that code made of promises runs the same way each time.
 */
export class Schedule {
  #nowMs = 0;
  #order = 0;
  #hash = 0x811c9dc5;
  readonly #heap: Happening[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Of all that has happened, and when: two runs of one seed must have the same. */
  get traceHash(): number {
    return this.#hash >>> 0;
  }

  trace(what: number): void {
    this.#hash = Math.imul(this.#hash ^ what, 0x01000193);
  }

  /** What is set for the same moment happens in the order in which it was set. */
  at(atMs: number, happen: () => void): void {
    const heap = this.#heap;
    let index = heap.length;
    const happening = { atMs: Math.max(atMs, this.#nowMs), order: this.#order++, happen };
    heap.push(happening);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(happening, heap[parent] as Happening)) break;
      heap[index] = heap[parent] as Happening;
      index = parent;
    }
    heap[index] = happening;
  }

  in(delayMs: number, happen: () => void): void {
    this.at(this.#nowMs + delayMs, happen);
  }

  /** Time passes at once, as while code holds the event loop: what is due meanwhile happens late, in its order. */
  hold(ms: number): void {
    this.#nowMs += ms;
  }

  /** Lets all promises go on that wait for nothing else. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < promiseTurns; turn += 1) await settled;
  }

  async runUntil(endMs: number): Promise<void> {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || first.atMs > endMs) break;
      this.#takeFirst();
      this.#nowMs = Math.max(this.#nowMs, first.atMs);
      this.trace(Math.floor(first.atMs * 1000));
      first.happen();
      await this.settle();
    }
    this.#nowMs = Math.max(this.#nowMs, endMs);
  }

  #takeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop() as Happening;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as Happening)) child += 1;
      if (!isBefore(heap[child] as Happening, last)) break;
      heap[index] = heap[child] as Happening;
      index = child;
    }
    heap[index] = last;
  }
}

function isBefore(one: Happening, other: Happening): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
