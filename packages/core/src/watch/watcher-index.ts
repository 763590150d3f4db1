import { IntervalTree } from './interval-tree.ts';
import type { Watcher } from './watcher.ts';

/**
 * Finds the watchers of a key. Watches on one key are in a map, so that any number of them costs a put one lookup;
 * watches on ranges are grouped by range, and the distinct ranges are in an interval tree.
 */
export class WatcherIndex<Owner> {
  readonly #byKey = new Map<string, Set<Watcher<Owner>>>();
  readonly #byRange = new IntervalTree<Set<Watcher<Owner>>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(watcher: Watcher<Owner>): void {
    this.#groupOf(watcher).add(watcher);
    this.#size += 1;
  }

  delete(watcher: Watcher<Owner>): void {
    const { start, end, single } = watcher.range;
    const group = single ? this.#byKey.get(start) : this.#byRange.get(start, end);
    if (group === undefined || !group.delete(watcher)) throw new Error('watcher index: a synced watcher is missing');
    this.#size -= 1;
    if (group.size > 0) return;
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

  #groupOf(watcher: Watcher<Owner>): Set<Watcher<Owner>> {
    const { start, end, single } = watcher.range;
    const existing = single ? this.#byKey.get(start) : this.#byRange.get(start, end);
    if (existing !== undefined) return existing;
    const watchers = new Set<Watcher<Owner>>();
    if (single) this.#byKey.set(start, watchers);
    else this.#byRange.add(start, end, watchers);
    return watchers;
  }
}
