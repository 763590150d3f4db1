import type { KeyValue } from './kv-types.ts';

/**
 * All versions of one key: the newest in `head`, the others in `older`, oldest first. Versions are immutable; the entry
 * is changed in place. A deletion is a version too, a *tombstone*: `version` 0, with only key and modRevision.
 */
export class KeyEntry {
  head: KeyValue;
  older: KeyValue[] | undefined;

  constructor(head: KeyValue) {
    this.head = head;
    this.older = undefined;
  }

  /** Makes `version` the newest. */
  push(version: KeyValue): void {
    // An array literal takes exactly one slot; most overwritten keys have one older version between compactions.
    if (this.older === undefined) this.older = [this.head];
    else this.older.push(this.head);
    this.head = version;
  }

  /** The newest version at `revision`, a tombstone included; undefined when the key was created later. */
  versionAt(revision: number): KeyValue | undefined {
    if (this.head.modRevision <= revision) return this.head;
    const older = this.older;
    if (older === undefined) return undefined;
    const count = countUpTo(older, revision);
    return count === 0 ? undefined : older[count - 1];
  }

  /** The first revision from `revision` on at which the key changed; Infinity if it did not change. */
  firstChangeFrom(revision: number): number {
    if (this.head.modRevision < revision) return Number.POSITIVE_INFINITY;
    const older = this.older;
    if (older === undefined) return this.head.modRevision;
    const before = countUpTo(older, revision - 1);
    return before < older.length ? older[before]!.modRevision : this.head.modRevision;
  }

  /** The key as a reader at `revision` sees it. */
  liveAt(revision: number): KeyValue | undefined {
    const version = this.versionAt(revision);
    return version === undefined || isTombstone(version) ? undefined : version;
  }
}

/**
 * The previous pair that a watch reports for a change of the key at `revision`: the key before the whole revision,
 * regardless of other writes in the same transaction. `replaced` is the version that the change itself replaced.
 */
export function pairBefore(entry: KeyEntry, replaced: KeyValue | undefined, revision: number): KeyValue | undefined {
  if (replaced === undefined || replaced.modRevision < revision) return replaced;
  return entry.liveAt(revision - 1);
}

export function isTombstone(version: KeyValue): boolean {
  return version.version === 0;
}

export function tombstone(key: string, modRevision: number): KeyValue {
  return { key, value: '', createRevision: 0, modRevision, version: 0, lease: 0n };
}

/** The number of `versions` (oldest first) with a modRevision of at most `revision`. */
export function countUpTo(versions: readonly KeyValue[], revision: number): number {
  let low = 0;
  let high = versions.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (versions[middle]!.modRevision <= revision) low = middle + 1;
    else high = middle;
  }
  return low;
}
