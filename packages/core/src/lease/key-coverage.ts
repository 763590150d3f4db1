import type { IntervalSet } from '../mvcc/interval-set.ts';
import { type AttachedKeys, firstKeyOutside } from './attached-keys.ts';

/** Limit on the sets of intervals for which one lease remembers what was found; the one used least recently goes. */
const maxFindings = 4;

interface Finding {
  /** Weak: what was found is useless, and must take no memory, once these intervals are not in use any more. */
  readonly intervals: WeakRef<IntervalSet>;
  /** A key that is in none of the intervals; undefined: there is none. */
  readonly outside: string | undefined;
}

/**
 * Whether all keys of one lease are in a set of intervals, remembered while keys come and go: who renews a lease with
 * thousands of keys asks each time. The intervals must not change once they were asked for.
 */
export class KeyCoverage {
  /** In the order of their last use. */
  #findings: Finding[] = [];

  /** Some key that is in none of the intervals. `keys`: those of the lease now. */
  keyOutside(keys: AttachedKeys, intervals: IntervalSet): string | undefined {
    const at = this.#findings.findIndex((one) => one.intervals.deref() === intervals);
    const [known] = at < 0 ? [] : this.#findings.splice(at, 1);
    const finding = known ?? { intervals: new WeakRef(intervals), outside: firstKeyOutside(keys, intervals) };
    this.#findings.push(finding);
    if (this.#findings.length > maxFindings) this.#findings.shift();
    return finding.outside;
  }

  /** A key outside stays outside, whatever is attached. */
  attached(key: string): void {
    this.#keep(({ outside, intervals }) => outside !== undefined || intervals.deref()?.has(key) === true);
  }

  detached(key: string): void {
    this.#keep(({ outside }) => outside !== key);
  }

  #keep(isTrue: (finding: Finding) => boolean): void {
    if (this.#findings.length > 0) this.#findings = this.#findings.filter(isTrue);
  }
}
