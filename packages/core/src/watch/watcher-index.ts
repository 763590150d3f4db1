import { IntervalTree } from './interval-tree.ts';
import type { Watcher } from './watcher.ts';

/** The watchers of one range, in no order. */
type WatcherGroup<Owner> = Watcher<Owner>[];

/**
 * Finds the watchers of a key. Watches on one key are in a map, so that any number of them costs a put one lookup;
 * watches on ranges are grouped by range, and the distinct ranges are in an interval tree. Each watcher knows its place
 * in its group, so that it is removed without a search: a stream may end with many thousands.
 */
export class WatcherIndex<Owner> {
  readonly #byKey = new Map<string, WatcherGroup<Owner>>();
  readonly #byRange = new IntervalTree<WatcherGroup<Owner>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(watcher: Watcher<Owner>): void {
    const { start, end, single } = watcher.range;
    let group = single ? this.#byKey.get(start) : this.#byRange.get(start, end);
    const other = group?.[0];
    if (group === undefined || other === undefined) {
      group = [watcher];
      if (single) this.#byKey.set(start, group);
      else this.#byRange.add(start, end, group);
    } else {
      // An equal one: often many watch the same keys, and their names take much of the memory of a watch.
      watcher.range = other.range;
      group.push(watcher);
    }
    watcher.group = group;
    watcher.placeInGroup = group.length - 1;
    this.#size += 1;
  }

  delete(watcher: Watcher<Owner>): void {
    const { group, placeInGroup } = watcher;
    const last = group?.pop();
    if (group === undefined || last === undefined) throw new Error('watcher index: a synced watcher is missing');
    if (last !== watcher) {
      group[placeInGroup] = last;
      last.placeInGroup = placeInGroup;
    }
    watcher.group = undefined;
    this.#size -= 1;
    if (group.length > 0) return;
    const { start, end, single } = watcher.range;
    if (single) this.#byKey.delete(start);
    else this.#byRange.delete(start, end);
  }

  /** Calls `found` for each watcher whose range contains the key. The index must not change meanwhile. */
  visit(key: string, found: (watcher: Watcher<Owner>) => void): void {
    this.#byKey.get(key)?.forEach(found);
    this.#byRange.visit(key, (watchers) => watchers.forEach(found));
  }

  *[Symbol.iterator](): Generator<Watcher<Owner>> {
    for (const watchers of this.#byKey.values()) yield* watchers;
    for (const watchers of this.#byRange.values()) yield* watchers;
  }
}
