/** What the items cost together that are sorted at once; a merge goes on in slices of any size. */
const runCost = 1_024;

export interface SlicedSortOptions<Item> {
  /** Leaves out what cannot be among the first so many items of the result. */
  readonly keep?: number;
  /** How much longer than others an item takes to be compared; 1 if it is left out. */
  readonly costOf?: (item: Item) => number;
}

/** Two neighbouring runs and how far they have been merged. */
interface Merge<Item> {
  readonly left: readonly Item[];
  readonly right: readonly Item[];
  readonly out: Item[];
  l: number;
  r: number;
}

/**
 * A stable sort in slices: runs of the items are sorted one by one, then merged pair by pair.
 */
export class SlicedSort<Item> {
  readonly #items: readonly Item[];
  readonly #compare: (a: Item, b: Item) => number;
  readonly #keep: number;
  readonly #costOf: (item: Item) => number;
  #taken = 0;
  #runs: Item[][] = [];
  /** What this pass has merged; it takes the place of `#runs` when the pass ends. */
  #merged: Item[][] = [];
  #nextRun = 0;
  #merge: Merge<Item> | undefined;

  /** The items are not changed, and must not change until the sort is done. */
  constructor(
    items: readonly Item[],
    compare: (a: Item, b: Item) => number,
    { keep = Infinity, costOf = () => 1 }: SlicedSortOptions<Item> = {},
  ) {
    this.#items = items;
    this.#compare = compare;
    this.#keep = keep;
    this.#costOf = costOf;
  }

  /** Works on items that cost about so much together. Returns whether the sort is done. */
  step(maxCost: number): boolean {
    let left = maxCost;
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
    let cost = 0;
    let end = this.#taken;
    while (end < this.#items.length && cost < runCost) cost += this.#costOf(this.#items[end++]!);
    const run = this.#items.slice(this.#taken, end).sort(this.#compare);
    this.#taken = end;
    if (run.length > this.#keep) run.length = this.#keep;
    this.#runs.push(run);
    return cost;
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

  #goOn(merge: Merge<Item>, maxCost: number): number {
    const { left, right, out } = merge;
    const wanted = Math.min(left.length + right.length, this.#keep);
    let cost = 0;
    while (out.length < wanted && cost < maxCost) {
      const a = left[merge.l];
      const b = right[merge.r];
      // Of equal items the left one came first.
      const takesLeft = merge.r === right.length || (merge.l < left.length && this.#compare(a!, b!) <= 0);
      if (takesLeft) merge.l++;
      else merge.r++;
      const taken = (takesLeft ? a : b)!;
      cost += this.#costOf(taken);
      out.push(taken);
    }
    if (out.length === wanted) {
      this.#merged.push(out);
      this.#merge = undefined;
    }
    return Math.max(1, cost);
  }
}
