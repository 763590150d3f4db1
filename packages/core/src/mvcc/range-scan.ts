import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import { compareStrings } from './btree.ts';
import type { KeyEntry } from './key-entry.ts';
import type { KeyValueStore } from './key-value-store.ts';
import { SortOrder, SortTarget } from './kv-types.ts';
import type { KeyValue, RangeRequest, RangeResult } from './kv-types.ts';
import { SlicedSort } from './sliced-sort.ts';

type Comparison = (a: KeyValue, b: KeyValue) => number;

/** Indexed by `SortTarget`. */
const comparisons: readonly Comparison[] = [
  (a, b) => compareStrings(a.key, b.key),
  (a, b) => a.version - b.version,
  (a, b) => a.createRevision - b.createRevision,
  (a, b) => a.modRevision - b.modRevision,
  (a, b) => compareStrings(a.value, b.value),
];

/** Evaluates a range in one call, which may take long: see `RangeScan`. */
export function readRange(store: KeyValueStore, request: RangeRequest): RangeResult | CoreError {
  const scan = beginScan(store, request);
  if ('kind' in scan) return scan;
  scan.step(Infinity);
  return scan.result;
}

/**
 * A range at the requested revision, or else at the newest one. Within a transaction that has written, the newest is
 * the revision that the transaction is writing.
 */
export function beginScan(store: KeyValueStore, request: RangeRequest): RangeScan | CoreError {
  const newest = store.readRevision;
  if (request.revision > newest) return coreError('FutureRevision');
  const revision = request.revision > 0 ? request.revision : newest;
  if (revision < store.compactRevision) return coreError('Compacted');
  return new RangeScan(store, request, revision);
}

/**
 * One range, with etcd's rules, read in slices. It reads the keys at one revision, regardless of writes between the
 * slices. The caller must pin that revision (see GarbageCollector.pin).
 */
export class RangeScan {
  readonly revision: number;
  readonly #store: KeyValueStore;
  readonly #request: RangeRequest;
  /** One row more than the limit, to know whether there is more. */
  readonly #atMost: number;
  readonly #filtered: boolean;
  #kvs: KeyValue[] = [];
  #count = 0;
  #from: string;
  #phase: 'collect' | 'sort' | 'strip' | 'done' = 'collect';
  #sort: SlicedSort<KeyValue> | undefined;
  #stripped = 0;
  #more = false;

  constructor(store: KeyValueStore, request: RangeRequest, revision: number) {
    this.#store = store;
    this.#request = request;
    this.revision = revision;
    this.#filtered = hasRevisionFilter(request);
    this.#atMost = request.countOnly ? 0 : collectLimit(request, this.#filtered);
    this.#from = request.key;
  }

  /** Scans about `maxRows` more keys. Returns whether the result is complete. */
  step(maxRows: number): boolean {
    switch (this.#phase) {
      case 'collect':
        if (this.#collect(maxRows)) this.#collected(maxRows);
        break;
      case 'sort':
        this.#sorted(this.#sort!, maxRows);
        break;
      case 'strip':
        this.#strip(maxRows);
        break;
      case 'done':
        break;
    }
    return this.#phase === 'done';
  }

  /** Once `step` has returned true. */
  get result(): RangeResult {
    return { kvs: this.#kvs, more: this.#more, count: this.#count };
  }

  /**
   * Collects rows in key order up to the limit, and counts the rest. Returns whether the end of the range was reached.
   */
  #collect(maxRows: number): boolean {
    const { revision } = this;
    const request = this.#request;
    const kvs = this.#kvs;
    const atMost = this.#atMost;
    let rows = 0;
    let last: KeyEntry | undefined;
    this.#store.index.visitRange(this.#from, request.rangeEnd, (entry) => {
      const kv = entry.liveAt(revision);
      if (kv !== undefined) {
        this.#count++;
        if (kvs.length < atMost && (!this.#filtered || passesFilter(request, kv))) kvs.push(kv);
      }
      if (++rows < maxRows) return true;
      last = entry;
      return false;
    });
    if (last === undefined) return true;
    // The lowest key after the last one. A range of one key is complete by now.
    this.#from = `${last.head.key}\0`;
    return request.rangeEnd === '';
  }

  #collected(maxRows: number): void {
    const { sortOrder, sortTarget, limit } = this.#request;
    const comparison = comparisons[sortTarget];
    const descends = sortOrder === SortOrder.descend;
    if (comparison === undefined || this.#kvs.length < 2 || (!descends && sortTarget === SortTarget.key)) {
      this.#cut(this.#kvs, maxRows);
      return;
    }
    // Keys that compare equal stay in key order, in either sort direction.
    const ordered: Comparison = descends ? (a, b) => comparison(b, a) : comparison;
    const costOf = sortTarget === SortTarget.value ? valueCost : undefined;
    this.#sort = new SlicedSort(this.#kvs, ordered, {
      keep: limit > 0 ? limit + 1 : Infinity,
      ...(costOf && { costOf }),
    });
    this.#phase = 'sort';
    this.#sorted(this.#sort, maxRows);
  }

  #sorted(sort: SlicedSort<KeyValue>, maxRows: number): void {
    if (sort.step(maxRows)) this.#cut(sort.sorted, maxRows);
  }

  /** Applies the limit, and only then drops the values: a request may sort by value and ask for keys only. */
  #cut(kvs: KeyValue[], maxRows: number): void {
    const { limit, keysOnly } = this.#request;
    this.#more = limit > 0 && kvs.length > limit;
    if (this.#more) kvs.length = limit;
    this.#kvs = kvs;
    this.#sort = undefined;
    this.#phase = keysOnly ? 'strip' : 'done';
    if (keysOnly) this.#strip(maxRows);
  }

  #strip(maxRows: number): void {
    const kvs = this.#kvs;
    const end = Math.min(kvs.length, this.#stripped + maxRows);
    for (let at = this.#stripped; at < end; at++) kvs[at] = { ...kvs[at]!, value: '' };
    this.#stripped = end;
    if (end === kvs.length) this.#phase = 'done';
  }
}

/** Bytes of a value whose comparison takes as long as another row. */
const bytesPerCost = 64;

function valueCost({ value }: KeyValue): number {
  return 1 + value.length / bytesPerCost;
}

/**
 * An explicit order needs every key first. In etcd a sort target without an order does not lift the limit, although it
 * sorts: the limit selects the first keys in key order, and those are sorted.
 */
function collectLimit(request: RangeRequest, filtered: boolean): number {
  if (request.limit <= 0 || request.sortOrder !== SortOrder.none || filtered) return Infinity;
  return request.limit + 1;
}

/** The maximum size of keys and values in the response to a range, for any selection of rows by the limit. */
export function mostBytesAnswered(request: RangeRequest, totalBytes: number, largestRowBytes: number): number {
  if (request.countOnly) return 0;
  return request.limit > 0 ? Math.min(totalBytes, request.limit * largestRowBytes) : totalBytes;
}

/** Whether the values of all rows are compared with each other. */
export function sortsByValue(request: RangeRequest): boolean {
  return request.sortTarget === SortTarget.value && !request.countOnly;
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
