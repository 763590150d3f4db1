/**
 * A priority queue of rows (small integers) by deadline: a binary heap that knows the place of each row, so that any
 * row can be moved or removed in O(log n). Rows with equal deadlines come out in no particular order.
 */
export class DeadlineQueue {
  /** The heap: each place holds a row and its deadline, so that a comparison follows no pointer. */
  readonly #rows: number[] = [];
  readonly #deadlines: number[] = [];
  /** The place of each row in the heap, or -1. */
  readonly #places: number[] = [];

  get size(): number {
    return this.#rows.length;
  }

  /** The row that is due first, or -1. */
  first(): number {
    return this.#rows[0] ?? -1;
  }

  /** The deadline of the first row, or undefined while the queue is empty. */
  firstDueMs(): number | undefined {
    return this.#deadlines[0];
  }

  has(row: number): boolean {
    return (this.#places[row] ?? -1) >= 0;
  }

  /** Adds `row` with the deadline `dueMs`, or moves it there. */
  set(row: number, dueMs: number): void {
    while (this.#places.length <= row) this.#places.push(-1);
    const place = this.#places[row] as number;
    if (place < 0) {
      this.#rows.push(row);
      this.#deadlines.push(dueMs);
      this.#rise(this.#rows.length - 1, row, dueMs);
    } else if (dueMs < (this.#deadlines[place] as number)) {
      this.#rise(place, row, dueMs);
    } else {
      this.#sink(place, row, dueMs);
    }
  }

  /** Removes `row`. Ignored if it is not in the queue. */
  remove(row: number): void {
    const place = this.#places[row] ?? -1;
    if (place < 0) return;
    this.#places[row] = -1;
    const lastRow = this.#rows.pop() as number;
    const lastDueMs = this.#deadlines.pop() as number;
    if (lastRow === row) return;
    if (lastDueMs < (this.#deadlines[place] as number)) this.#rise(place, lastRow, lastDueMs);
    else this.#sink(place, lastRow, lastDueMs);
  }

  /** Puts a row at `place`, or nearer to the front while the rows there are due later. */
  #rise(from: number, row: number, dueMs: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if ((this.#deadlines[parent] as number) <= dueMs) break;
      this.#move(parent, place);
      place = parent;
    }
    this.#put(place, row, dueMs);
  }

  /** Puts a row at `place`, or further back while the rows there are due earlier. */
  #sink(from: number, row: number, dueMs: number): void {
    const deadlines = this.#deadlines;
    let place = from;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= deadlines.length) break;
      const right = child + 1;
      if (right < deadlines.length && (deadlines[right] as number) < (deadlines[child] as number)) child = right;
      if ((deadlines[child] as number) >= dueMs) break;
      this.#move(child, place);
      place = child;
    }
    this.#put(place, row, dueMs);
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#rows[from] as number, this.#deadlines[from] as number);
  }

  #put(place: number, row: number, dueMs: number): void {
    this.#rows[place] = row;
    this.#deadlines[place] = dueMs;
    this.#places[row] = place;
  }
}
