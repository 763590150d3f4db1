import { endOfRange, IntervalSet } from '../mvcc/interval-set.ts';
import type { Permission } from './auth-types.ts';

/**
 * What a role allows, or several roles of a user together. Ranges that overlap or touch are one. Each kind is derived
 * when it is first asked for: with tens of thousands of permissions that takes milliseconds, and a request needs one.
 */
export class PermittedRanges {
  readonly #derive: (type: 'read' | 'write') => IntervalSet;
  /** Limit on its intervals, of both kinds. */
  readonly maxSize: number;
  #read: IntervalSet | undefined;
  #write: IntervalSet | undefined;

  private constructor(maxSize: number, derive: (type: 'read' | 'write') => IntervalSet) {
    this.maxSize = maxSize;
    this.#derive = derive;
  }

  /** `permissions`: in the order of their keys. */
  static ofRole(permissions: readonly Permission[]): PermittedRanges {
    return new PermittedRanges(2 * permissions.length, (type) => {
      const set = new IntervalSet();
      for (const { type: allowed, key, rangeEnd } of permissions) {
        if (allowed !== 'readWrite' && allowed !== type) continue;
        if (rangeEnd === '') set.addKey(key);
        else set.add(key, endOfRange(key, rangeEnd));
      }
      return set;
    });
  }

  static ofAll(parts: readonly PermittedRanges[]): PermittedRanges {
    const maxSize = parts.reduce((sum, part) => sum + part.maxSize, 0);
    return new PermittedRanges(maxSize, (type) => unionOf(parts.map((part) => part[type])));
  }

  get read(): IntervalSet {
    return (this.#read ??= this.#derive('read'));
  }

  get write(): IntervalSet {
    return (this.#write ??= this.#derive('write'));
  }
}

/** Sets of about the same size are merged, so that no interval is walked more often than the sets can be halved. */
function unionOf(sets: readonly IntervalSet[]): IntervalSet {
  const union = new IntervalSet();
  if (sets.length > 2) {
    const middle = sets.length >>> 1;
    union.addAll(unionOf(sets.slice(0, middle)));
    union.addAll(unionOf(sets.slice(middle)));
  } else {
    for (const set of sets) union.addAll(set);
  }
  return union;
}
