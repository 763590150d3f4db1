import sortedBTree from 'sorted-btree';
import { bulkLoad } from 'sorted-btree/extended/bulkLoad.js';

/**
 * The only file that depends on how the B-tree library is packaged. The library is CommonJS with its class under
 * `default`, which Node, the compiler and some test runners unwrap to different depths.
 */
type BTreeConstructor = typeof sortedBTree.default;

const loaded: unknown = sortedBTree;

export const BTree: BTreeConstructor =
  typeof loaded === 'function' ? (loaded as BTreeConstructor) : sortedBTree.default;

export type BTree<K, V> = InstanceType<typeof sortedBTree.default<K, V>>;

/** 0 selects the library's default. */
const defaultNodeSize = 0;
/** Fill factor of the leaves of a loaded tree. Free room keeps the first writes from splitting every leaf. */
const leafLoad = 0.8;

/** Builds a tree from sorted, unique strings, which is several times faster than inserting them. */
export function loadBTree<V>(keys: string[], values: V[]): BTree<string, V> {
  return bulkLoad(keys, values, defaultNodeSize, compareStrings, leafLoad);
}

/** Byte order, because keys are latin1 strings. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function compareBigints(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
