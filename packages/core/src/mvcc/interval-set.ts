/** A set with so many times the intervals of another takes them one at a time; otherwise both are walked. */
const fewTimes = 8;

/** After every key, because a key has only chars up to 0xff. */
const behindAllKeys = '\u{100}';

/** The first string after a range that is given as in a RangeRequest. */
export function endOfRange(key: string, rangeEnd: string): string {
  return rangeEnd === '' ? `${key}\0` : rangeEnd === '\0' ? behindAllKeys : rangeEnd;
}

/**
 * A set of strings given as intervals [from, to). The intervals are sorted and disjoint, so a lookup is a binary
 * search.
 */
export class IntervalSet {
  #froms: string[] = [];
  #tos: string[] = [];

  /** An interval whose end is at or before its start is empty. */
  add(from: string, to: string): void {
    if (to > from) this.#add(from, to);
  }

  /** One string. */
  addKey(key: string): void {
    this.#add(key, `${key}\0`);
  }

  /** An interval that is not empty. Each comparison of long keys takes time, and most intervals need this one. */
  #add(from: string, to: string): void {
    const last = this.#tos.at(-1);
    if (last === undefined || last < from) {
      this.#froms.push(from);
      this.#tos.push(to);
      return;
    }
    // All intervals from `first` up to `end` overlap or touch the new interval and are merged with it.
    const first = countBelow(this.#tos, from);
    let end = first;
    while (end < this.#froms.length && this.#froms[end]! <= to) end++;
    const low = end > first && this.#froms[first]! < from ? this.#froms[first]! : from;
    const high = end > first && this.#tos[end - 1]! > to ? this.#tos[end - 1]! : to;
    this.#froms.splice(first, end - first, low);
    this.#tos.splice(first, end - first, high);
  }

  addAll(other: IntervalSet): void {
    const [froms, tos] = [this.#froms, this.#tos];
    const isWalked = froms.length > 0 && other.size * fewTimes >= froms.length;
    if (isWalked) [this.#froms, this.#tos] = [[], []];
    // An interval of this set that begins before the next of the other goes first, so that each is added at the end.
    let own = isWalked ? 0 : froms.length;
    for (let i = 0; i < other.#froms.length; i++) {
      const from = other.#froms[i]!;
      for (; own < froms.length && froms[own]! <= from; own++) this.#add(froms[own]!, tos[own]!);
      this.#add(from, other.#tos[i]!);
    }
    for (; own < froms.length; own++) this.#add(froms[own]!, tos[own]!);
  }

  get size(): number {
    return this.#froms.length;
  }

  has(text: string): boolean {
    return this.endAround(text) !== undefined;
  }

  /** Whether one interval contains `from` and all of [from, to), which is empty when `to` is at or before `from`. */
  covers(from: string, to: string): boolean {
    const at = this.#intervalAround(from);
    return at >= 0 && to <= this.#tos[at]!;
  }

  /** The end of the interval that contains the string. */
  endAround(text: string): string | undefined {
    const at = this.#intervalAround(text);
    return at < 0 ? undefined : this.#tos[at];
  }

  /** For lookups of ascending strings: each begins where the last one ended. The set must not change meanwhile. */
  walk(): { readonly endAround: (text: string) => string | undefined } {
    const [froms, tos] = [this.#froms, this.#tos];
    let at = 0;
    return {
      endAround: (text) => {
        // Nearly every key of a lease has an interval of its own: to compare for equality takes the least time.
        if (froms[at + 1] === text) {
          at += 1;
          return tos[at];
        }
        // Steps that double: the next interval costs one, and a distant one few.
        for (let step = 1; at < tos.length && tos[at]! <= text; step *= 2) {
          const far = Math.min(at + step, tos.length);
          if (far < tos.length && tos[far]! <= text) at = far;
          else at = countBelow(tos, `${text}\0`, { low: at + 1, high: far });
        }
        return at < froms.length && froms[at]! <= text ? tos[at] : undefined;
      },
    };
  }

  /** -1: none contains it. */
  #intervalAround(text: string): number {
    const at = countBelow(this.#froms, `${text}\0`) - 1;
    return at >= 0 && text < this.#tos[at]! ? at : -1;
  }
}

/** The number of the sorted strings below `bound`, which is at least `low` and at most `high`. */
function countBelow(sorted: readonly string[], bound: string, { low = 0, high = sorted.length } = {}): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
