import sortedBTree from 'sorted-btree';
import { bulkLoad } from 'sorted-btree/extended/bulkLoad.js';

/**
 * The one place that knows how the B-tree library is packed. It is CommonJS with its class under `default`, which
 * Node, the compiler and some test runners unwrap to a different depth.
 */
type BTreeConstructor = typeof sortedBTree.default;

const loaded: unknown = sortedBTree;

export const BTree: BTreeConstructor =
  typeof loaded === 'function' ? (loaded as BTreeConstructor) : sortedBTree.default;

export type BTree<K, V> = InstanceType<typeof sortedBTree.default<K, V>>;

/** 0 stands for the library's own choice. */
const defaultNodeSize = 0;
/** How full the leaves of a loaded tree are: some room is left, so that the first writes do not split each of them. */
const leafLoad = 0.8;

/** A tree of strings that are sorted already, each of them once: several times faster than adding them. */
export function loadBTree<V>(keys: string[], values: V[]): BTree<string, V> {
  return bulkLoad(keys, values, defaultNodeSize, compareStrings, leafLoad);
}

/** Byte order, since keys are latin1 strings. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function compareBigints(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
