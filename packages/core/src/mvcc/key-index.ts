import { BTree, compareStrings } from './btree.ts';
import type { KeyEntry } from './key-entry.ts';

const stop = { break: true };

/** Every key that has a version, in byte order. */
export class KeyIndex {
  readonly #tree: BTree<string, KeyEntry>;

  constructor(tree: BTree<string, KeyEntry> = new BTree<string, KeyEntry>(undefined, compareStrings)) {
    this.#tree = tree;
  }

  get size(): number {
    return this.#tree.size;
  }

  get(key: string): KeyEntry | undefined {
    return this.#tree.get(key);
  }

  add(key: string, entry: KeyEntry): void {
    this.#tree.set(key, entry);
  }

  remove(key: string): void {
    this.#tree.delete(key);
  }

  /**
   * Calls `visit` for each entry of etcd's range (key, rangeEnd), in order, until it returns false. rangeEnd '' selects
   * the one key, '\0' every key from key on; an end at or before the key is an empty range. `visit` must not add or
   * remove keys.
   */
  visitRange(key: string, rangeEnd: string, visit: (entry: KeyEntry) => boolean): void {
    if (rangeEnd === '') {
      const entry = this.#tree.get(key);
      if (entry !== undefined) visit(entry);
      return;
    }
    const openEnd = rangeEnd === '\0';
    const high = openEnd ? this.#tree.maxKey() : rangeEnd;
    if (high === undefined) return;
    this.#tree.forRange(key, high, openEnd, (_key, entry) => (visit(entry) ? undefined : stop));
  }

  /** Calls `visit` for each entry after `after` (undefined: from the first on), in order, until it returns false. */
  visitAfter(after: string | undefined, visit: (entry: KeyEntry) => boolean): void {
    const low = after === undefined ? this.#tree.minKey() : this.#tree.nextHigherKey(after);
    if (low !== undefined) this.visitRange(low, '\0', visit);
  }
}
