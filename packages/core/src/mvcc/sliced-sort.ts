/** The cost of the items that are sorted in one call; a merge runs in slices of any size. */
const runCost = 1_024;
/** Up to so many items are kept in order by insertion, at up to as many comparisons for each item. */
const maxInserted = 8;

export interface SlicedSortOptions<Item> {
  /** Drops items that cannot be among the first `limit` of the result. */
  readonly keep?: number;
  /** The relative cost of comparing an item; 1 when left out. */
  readonly costOf?: (item: Item) => number;
}

/** A sorted part of a list of positions. */
interface Run {
  readonly from: number;
  readonly to: number;
}

/** Two neighbouring runs, and the progress of their merge. */
interface Merge {
  readonly left: Run;
  readonly right: Run;
  l: number;
  r: number;
}

/**
 * A stable sort in slices: runs of items are sorted one by one, then merged pair by pair. When only the first of the
 * result are kept, most others are dropped after one comparison, before their run is sorted; so few that they need no
 * runs are kept in order as the items come. The sort moves positions between two arrays of numbers: copying a list of a
 * million items in each pass would create as much garbage.
 */
export class SlicedSort<Item> {
  readonly #items: readonly Item[];
  readonly #compare: (a: number, b: number) => number;
  readonly #keep: number;
  readonly #costOf: (item: Item) => number;
  #taken = 0;
  /** How many of those are in runs. */
  #kept = 0;
  /** So many items as are kept come up to this one: those taken later that do not come before it are dropped. */
  #bound: number | undefined;
  /** The runs of this pass are in `#from`; the merge writes to `#to`. */
  #from: Uint32Array;
  #to: Uint32Array;
  #runs: Run[] = [];
  #merged: Run[] = [];
  #nextRun = 0;
  /** The filled length of `#to`. */
  #end = 0;
  #merge: Merge | undefined;
  readonly #sorted: Item[] = [];
  #isDone = false;

  /** The items are not changed, and must not change until the sort is done. */
  constructor(
    items: readonly Item[],
    compare: (a: Item, b: Item) => number,
    { keep = Infinity, costOf = () => 1 }: SlicedSortOptions<Item> = {},
  ) {
    this.#items = items;
    this.#compare = (a, b) => compare(items[a]!, items[b]!) || a - b;
    this.#keep = keep;
    this.#costOf = costOf;
    this.#from = new Uint32Array(items.length);
    this.#to = new Uint32Array(items.length);
  }

  /** Processes items of about this total cost. Returns whether the sort is done. */
  step(maxCost: number): boolean {
    let left = maxCost;
    while (left > 0) {
      if (this.#taken < this.#items.length) left -= this.#sortRun();
      else if (this.#merge !== undefined) left -= this.#goOn(this.#merge, left);
      else if (!this.#nextPair()) left -= this.#gather(left);
      if (this.#isDone) return true;
    }
    return this.#isDone;
  }

  /** Valid once `step` has returned true. */
  get sorted(): Item[] {
    return this.#sorted;
  }

  /** Returns the items in sorted order. */
  #gather(maxItems: number): number {
    const length = this.#runs[0]?.to ?? 0;
    const before = this.#sorted.length;
    const end = Math.min(length, before + maxItems);
    for (let at = before; at < end; at++) this.#sorted.push(this.#items[this.#from[at]!]!);
    this.#isDone = end === length;
    return Math.max(1, end - before);
  }

  #sortRun(): number {
    let cost = 0;
    const from = this.#kept;
    const bound = this.#bound;
    while (this.#taken < this.#items.length && cost < runCost) {
      const place = this.#taken++;
      cost += this.#costOf(this.#items[place]!);
      if (this.#keep <= maxInserted) this.#insert(place);
      else if (bound === undefined || this.#compare(place, bound) < 0) this.#from[this.#kept++] = place;
    }
    if (this.#keep <= maxInserted) {
      this.#runs = [{ from: 0, to: this.#kept }];
      return cost;
    }
    if (this.#kept === from) return cost;
    this.#from.subarray(from, this.#kept).sort(this.#compare);
    const to = Math.min(this.#kept, from + this.#keep);
    this.#runs.push({ from, to });
    // Each item of the run comes before the bound, so the last that is kept is a closer one.
    if (to > from && to === from + this.#keep) this.#bound = this.#from[to - 1]!;
    return cost;
  }

  #insert(place: number): void {
    let at = Math.min(this.#kept, this.#keep - 1);
    if (at < 0 || (at < this.#kept && this.#compare(place, this.#from[at]!) > 0)) return;
    for (; at > 0 && this.#compare(place, this.#from[at - 1]!) < 0; at--) this.#from[at] = this.#from[at - 1]!;
    this.#from[at] = place;
    this.#kept = Math.min(this.#kept + 1, this.#keep);
  }

  /** Returns false when one run is left. */
  #nextPair(): boolean {
    if (this.#nextRun === this.#runs.length && this.#merged.length > 0) {
      [this.#from, this.#to] = [this.#to, this.#from];
      this.#runs = this.#merged;
      this.#merged = [];
      this.#nextRun = 0;
      this.#end = 0;
    }
    if (this.#runs.length < 2) return false;
    const left = this.#runs[this.#nextRun]!;
    // An odd last run has no run to merge with.
    const right = this.#runs[this.#nextRun + 1] ?? { from: left.to, to: left.to };
    this.#merge = { left, right, l: left.from, r: right.from };
    this.#nextRun = Math.min(this.#nextRun + 2, this.#runs.length);
    return true;
  }

  #goOn(merge: Merge, maxCost: number): number {
    const { left, right } = merge;
    const begin = this.#merged.at(-1)?.to ?? 0;
    const wanted = begin + Math.min(left.to - left.from + right.to - right.from, this.#keep);
    let cost = 0;
    while (this.#end < wanted && cost < maxCost) {
      const [a, b] = [this.#from[merge.l]!, this.#from[merge.r]!];
      const takesLeft = merge.r === right.to || (merge.l < left.to && this.#compare(a, b) < 0);
      if (takesLeft) merge.l++;
      else merge.r++;
      const place = takesLeft ? a : b;
      cost += this.#costOf(this.#items[place]!);
      this.#to[this.#end++] = place;
    }
    if (this.#end === wanted) {
      this.#merged.push({ from: begin, to: wanted });
      this.#merge = undefined;
    }
    return Math.max(1, cost);
  }
}
