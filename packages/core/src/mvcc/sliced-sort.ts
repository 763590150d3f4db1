/** Items that are sorted at once; a merge goes on in slices of any size. */
const runItems = 1_024;

/** Two neighbouring runs and how far they have been merged. */
interface Merge<Item> {
  readonly left: readonly Item[];
  readonly right: readonly Item[];
  readonly out: Item[];
  l: number;
  r: number;
}

/**
 * A stable sort in slices: runs of the items are sorted one by one, then merged pair by pair. `keep` leaves out what
 * cannot be among the first `keep` items of the result.
 */
export class SlicedSort<Item> {
  readonly #items: readonly Item[];
  readonly #compare: (a: Item, b: Item) => number;
  readonly #keep: number;
  #taken = 0;
  #runs: Item[][] = [];
  /** What this pass has merged; it takes the place of `#runs` when the pass ends. */
  #merged: Item[][] = [];
  #nextRun = 0;
  #merge: Merge<Item> | undefined;

  /** The items are not changed, and must not change until the sort is done. */
  constructor(items: readonly Item[], compare: (a: Item, b: Item) => number, keep = Infinity) {
    this.#items = items;
    this.#compare = compare;
    this.#keep = keep;
  }

  /** Works on about `maxItems` items. Returns whether the sort is done. */
  step(maxItems: number): boolean {
    let left = maxItems;
    while (left > 0) {
      if (this.#taken < this.#items.length) left -= this.#sortRun();
      else if (this.#merge !== undefined) left -= this.#goOn(this.#merge, left);
      else if (!this.#nextPair()) return true;
    }
    return this.#taken === this.#items.length && this.#merge === undefined && !this.#nextPair();
  }

  /** Once `step` has returned true. */
  get sorted(): Item[] {
    return this.#runs[0] ?? [];
  }

  #sortRun(): number {
    const run = this.#items.slice(this.#taken, this.#taken + runItems).sort(this.#compare);
    this.#taken += run.length;
    const { length } = run;
    if (length > this.#keep) run.length = this.#keep;
    this.#runs.push(run);
    return length;
  }

  /** Returns false when one run is left. */
  #nextPair(): boolean {
    if (this.#nextRun === this.#runs.length && this.#merged.length > 0) {
      this.#runs = this.#merged;
      this.#merged = [];
      this.#nextRun = 0;
    }
    if (this.#runs.length < 2) return false;
    const left = this.#runs[this.#nextRun] ?? [];
    const right = this.#runs[this.#nextRun + 1];
    if (right === undefined) this.#merged.push(left);
    else this.#merge = { left, right, out: [], l: 0, r: 0 };
    this.#nextRun = Math.min(this.#nextRun + 2, this.#runs.length);
    return true;
  }

  #goOn(merge: Merge<Item>, maxItems: number): number {
    const { left, right, out } = merge;
    const wanted = Math.min(left.length + right.length, this.#keep);
    const end = Math.min(wanted, out.length + maxItems);
    const before = out.length;
    while (out.length < end) {
      const a = left[merge.l];
      const b = right[merge.r];
      // Of equal items the left one came first.
      const takesLeft = merge.r === right.length || (merge.l < left.length && this.#compare(a!, b!) <= 0);
      if (takesLeft) merge.l++;
      else merge.r++;
      out.push((takesLeft ? a : b)!);
    }
    if (end === wanted) {
      this.#merged.push(out);
      this.#merge = undefined;
    }
    return Math.max(1, end - before);
  }
}
