/** The keys of a watch, normalised once, so that the index, the scan and a permission check use the same range. */
export interface WatchRange {
  readonly start: string;
  /** Exclusive; undefined when the range has no upper end. */
  readonly end: string | undefined;
  /** True when the range is the one key `start`; `end` is then its direct successor. */
  readonly single: boolean;
}

/**
 * Interprets key and rangeEnd as etcd does for a watch. An empty key means the smallest key, '\0' (so an empty key
 * without a range end watches that one key and not everything). rangeEnd '' means one key, '\0' means from `key` on.
 * Returns undefined when the range can contain no key.
 */
export function watchRange(key: string, rangeEnd: string): WatchRange | undefined {
  const start = key === '' ? '\0' : key;
  if (rangeEnd === '') return { start, end: `${start}\0`, single: true };
  if (rangeEnd === '\0') return { start, end: undefined, single: false };
  if (rangeEnd <= start) return undefined;
  return { start, end: rangeEnd, single: false };
}

/** The range end that gives the range again, as in a request with the key `start`. */
export function rangeEndOf({ end, single }: WatchRange): string {
  return single ? '' : (end ?? '\0');
}

export function rangeHolds(range: WatchRange, key: string): boolean {
  if (range.single) return key === range.start;
  return key >= range.start && (range.end === undefined || key < range.end);
}
