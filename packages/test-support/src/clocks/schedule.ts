interface Happening {
  readonly atMs: number;
  readonly order: number;
  readonly happen: () => void;
}

/** The real one, also while a test replaces the timers of the process. */
const nextTurn = setImmediate;

/**
 * The true time of a simulated cluster, and all its future events, in order. Between two events all promises settle, so
 * that asynchronous code runs the same way each time.
 */
export class Schedule {
  #nowMs = 0;
  #order = 0;
  #hash = 0x811c9dc5;
  readonly #heap: Happening[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  /** A digest of all events and their times: two runs of one seed must have the same. */
  get traceHash(): number {
    return this.#hash >>> 0;
  }

  trace(what: number): void {
    this.#hash = Math.imul(this.#hash ^ what, 0x01000193);
  }

  /** Events at the same time run in the order in which they were scheduled. */
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

  /** Time passes at once, as while code blocks the event loop: due events run late, in order. */
  hold(ms: number): void {
    this.#nowMs += ms;
  }

  /** Runs all promise callbacks that are ready, and those that become ready by them, however long the chain. */
  settle(): Promise<void> {
    return new Promise<void>((resolve) => void nextTurn(resolve));
  }

  async runUntil(endMs: number): Promise<void> {
    // Code that was called just before may schedule its first event only when its promises settle.
    await this.settle();
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
