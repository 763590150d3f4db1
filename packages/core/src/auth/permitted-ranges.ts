import { endOfRange, IntervalSet } from '../mvcc/interval-set.ts';
import type { Permission } from './auth-types.ts';

/** What the permissions of all roles of a user allow together. Ranges that overlap or touch are one. */
export class PermittedRanges {
  readonly read = new IntervalSet();
  readonly write = new IntervalSet();

  add({ type, key, rangeEnd }: Permission): void {
    const end = endOfRange(key, rangeEnd);
    if (type !== 'write') this.read.add(key, end);
    if (type !== 'read') this.write.add(key, end);
  }
  /** Intervals, of both kinds. */
  get size(): number {
    return this.read.size + this.write.size;
  }
}
