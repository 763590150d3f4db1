/** Room for this many rows at first; it is doubled when a larger row comes. */
const smallestRows = 8;

/**
 * A priority queue of rows (small integers) by deadline: a binary heap that knows the place of each row, so that any
 * row can be moved or removed in O(log n). Rows with equal deadlines come out in no particular order. Its memory is
 * that of the largest row so far: 16 bytes for each.
 */
export class DeadlineQueue {
  /** The heap: each place holds a row and its deadline, so that a comparison follows no pointer. */
  #rows = new Int32Array(smallestRows);
  #deadlines = new Float64Array(smallestRows);
  /** One more than the place of each row in the heap; 0 for a row that is not in it. */
  #places = new Int32Array(smallestRows);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The row that is due first, or -1. */
  first(): number {
    return this.#size === 0 ? -1 : (this.#rows[0] as number);
  }

  /** The deadline of the first row, or undefined while the queue is empty. */
  firstDueMs(): number | undefined {
    return this.#size === 0 ? undefined : this.#deadlines[0];
  }

  has(row: number): boolean {
    return this.#placeOf(row) >= 0;
  }

  /** Adds `row` with the deadline `dueMs`, or moves it there. */
  set(row: number, dueMs: number): void {
    if (row >= this.#rows.length) this.#grow(row + 1);
    const place = this.#placeOf(row);
    if (place < 0) {
      this.#size += 1;
      this.#rise(this.#size - 1, row, dueMs);
    } else if (dueMs < (this.#deadlines[place] as number)) {
      this.#rise(place, row, dueMs);
    } else {
      this.#sink(place, row, dueMs);
    }
  }

  /** Removes `row`. Ignored if it is not in the queue. */
  remove(row: number): void {
    const place = this.#placeOf(row);
    if (place < 0) return;
    this.#places[row] = 0;
    this.#size -= 1;
    const lastRow = this.#rows[this.#size] as number;
    if (lastRow === row) return;
    const lastDueMs = this.#deadlines[this.#size] as number;
    if (lastDueMs < (this.#deadlines[place] as number)) this.#rise(place, lastRow, lastDueMs);
    else this.#sink(place, lastRow, lastDueMs);
  }

  /** The place of `row` in the heap, or -1. */
  #placeOf(row: number): number {
    return (this.#places[row] ?? 0) - 1;
  }

  /** Makes room for this many rows: rows are small integers, so no more can be in the heap. */
  #grow(rows: number): void {
    const capacity = Math.max(rows, 2 * this.#rows.length);
    const old = { rows: this.#rows, deadlines: this.#deadlines, places: this.#places };
    this.#rows = new Int32Array(capacity);
    this.#rows.set(old.rows);
    this.#deadlines = new Float64Array(capacity);
    this.#deadlines.set(old.deadlines);
    this.#places = new Int32Array(capacity);
    this.#places.set(old.places);
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
      if (child >= this.#size) break;
      const right = child + 1;
      if (right < this.#size && (deadlines[right] as number) < (deadlines[child] as number)) child = right;
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
    this.#places[row] = place + 1;
  }
}
