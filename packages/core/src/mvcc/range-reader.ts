import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import { compareStrings } from './btree.ts';
import type { KeyValueStore } from './key-value-store.ts';
import type { KeyValue, RangeRequest, RangeResult } from './kv-types.ts';

/** Numbers of the wire's SortOrder and SortTarget that change what is done. */
const sortNone = 0;
const sortDescend = 2;
const targetKey = 0;

type Comparison = (a: KeyValue, b: KeyValue) => number;

const comparisons: readonly Comparison[] = [
  (a, b) => compareStrings(a.key, b.key),
  (a, b) => a.version - b.version,
  (a, b) => a.createRevision - b.createRevision,
  (a, b) => a.modRevision - b.modRevision,
  (a, b) => compareStrings(a.value, b.value),
];

/**
 * Answers one range with etcd's rules, at the revision that the request names or else at the newest one. Within a
 * transaction that has written, the newest is the one that it is writing.
 */
export function readRange(store: KeyValueStore, request: RangeRequest): RangeResult | CoreError {
  const newest = store.readRevision;
  if (request.revision > newest) return coreError('FutureRevision');
  const revision = request.revision > 0 ? request.revision : newest;
  if (revision < store.compactRevision) return coreError('Compacted');
  if (request.countOnly) return { kvs: [], more: false, count: countLive(store, request, revision) };
  return arrange(request, collect(store, request, revision));
}

interface Collected {
  readonly kvs: KeyValue[];
  /** All keys of the range, collected or not. */
  readonly count: number;
}

/** Collects in key order; no more than is needed, but counts the rest. */
function collect(store: KeyValueStore, request: RangeRequest, revision: number): Collected {
  const atMost = collectLimit(request);
  const kvs: KeyValue[] = [];
  let count = 0;
  const filtered = hasRevisionFilter(request);
  store.index.visitRange(request.key, request.rangeEnd, (entry) => {
    const kv = entry.liveAt(revision);
    if (kv === undefined) return true;
    count++;
    if (kvs.length < atMost && (!filtered || passesFilter(request, kv))) kvs.push(kv);
    return true;
  });
  return { kvs, count };
}

function countLive(store: KeyValueStore, request: RangeRequest, revision: number): number {
  let count = 0;
  store.index.visitRange(request.key, request.rangeEnd, (entry) => {
    if (entry.liveAt(revision) !== undefined) count++;
    return true;
  });
  return count;
}

/**
 * One more than the limit, to know whether there is more. An explicit order needs every key first. A sort target
 * without an order does not lift the limit in etcd, although it sorts: the first keys in key order are what is sorted
 * then.
 */
function collectLimit(request: RangeRequest): number {
  if (request.limit <= 0 || request.sortOrder !== sortNone || hasRevisionFilter(request)) return Infinity;
  return request.limit + 1;
}

/** Sorts, cuts at the limit and drops the values, in this order: one may sort by value and ask for the keys. */
function arrange(request: RangeRequest, collected: Collected): RangeResult {
  let kvs = collected.kvs;
  sort(request, kvs);
  const more = request.limit > 0 && kvs.length > request.limit;
  if (more) kvs = kvs.slice(0, request.limit);
  if (request.keysOnly) kvs = kvs.map((kv) => ({ ...kv, value: '' }));
  return { kvs, more, count: collected.count };
}

/** Keys that compare equal stay in key order, whichever way the rest is sorted. */
function sort(request: RangeRequest, kvs: KeyValue[]): void {
  const comparison = comparisons[request.sortTarget];
  if (comparison === undefined) return;
  if (request.sortOrder === sortDescend) kvs.sort((a, b) => comparison(b, a));
  else if (request.sortTarget !== targetKey) kvs.sort(comparison);
}

function hasRevisionFilter(request: RangeRequest): boolean {
  return (
    request.minModRevision !== 0 ||
    request.maxModRevision !== 0 ||
    request.minCreateRevision !== 0 ||
    request.maxCreateRevision !== 0
  );
}

function passesFilter(request: RangeRequest, kv: KeyValue): boolean {
  return (
    (request.maxModRevision === 0 || kv.modRevision <= request.maxModRevision) &&
    (request.minModRevision === 0 || kv.modRevision >= request.minModRevision) &&
    (request.maxCreateRevision === 0 || kv.createRevision <= request.maxCreateRevision) &&
    (request.minCreateRevision === 0 || kv.createRevision >= request.minCreateRevision)
  );
}
