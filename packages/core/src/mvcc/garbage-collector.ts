import type { KeyEntry } from './key-entry.ts';
import { countUpTo, isTombstone } from './key-entry.ts';
import type { KeyIndex } from './key-index.ts';
import type { KeyValue } from './kv-types.ts';
import { firstRevision } from './revision-log.ts';
import type { RevisionLog } from './revision-log.ts';
import { versionBytes } from './version-bytes.ts';

/**
 * Frees compacted versions, in slices. The collector walks the history, not the keys: only a key that changed at or
 * before the compact revision can have a version to drop, so the work is proportional to the number of writes, not to
 * the number of stored keys. No read, event, hash or snapshot depends on its progress.
 */
export class GarbageCollector {
  readonly #index: KeyIndex;
  readonly #log: RevisionLog;
  /** The next change to process. */
  #revision: number;
  #position = 0;
  /** The compact revision of this round. A later compaction waits for the next round. */
  #target = -1;
  /** The compact revision up to which collection is complete. */
  #done = -1;
  /** The number of readers pinned at each revision. */
  readonly #pins = new Map<number, number>();
  #freedBytes = 0;
  /** The size of the deletions at `#done`. */
  #lastDeletionsBytes = 0;

  constructor(index: KeyIndex, log: RevisionLog) {
    this.#index = index;
    this.#log = log;
    this.#revision = log.firstHeldRevision;
  }

  /** Processes up to `maxSteps` changes. Returns whether more can be done now. */
  run(maxSteps: number): boolean {
    for (let step = 0; step < maxSteps; step++) {
      if (!this.#step()) return false;
    }
    return this.#done < this.#collectable();
  }

  /** Whether the remaining work waits for a pin to be released. */
  get isPaused(): boolean {
    return this.#collectable() < this.#log.compactRevision;
  }

  /** Whether every compacted version has been freed. */
  get isDone(): boolean {
    return this.#done >= this.#log.compactRevision;
  }

  /**
   * The size of the deletions that are kept for watches at the compact revision. Only the next compaction frees them,
   * and that needs a newer revision.
   */
  get lastDeletionsBytes(): number {
    return this.#lastDeletionsBytes;
  }

  /**
   * Pins `revision`, which must not be compacted yet: keeps the versions that reads at `revision` or later need, and
   * the history from there on, until the returned function is called. Older compacted versions are still collected, so
   * that an endless sequence of overlapping reads does not stop collection.
   */
  pin(revision: number): () => void {
    this.#pins.set(revision, (this.#pins.get(revision) ?? 0) + 1);
    let pinned = true;
    return () => {
      if (!pinned) return;
      pinned = false;
      const others = this.#pins.get(revision)! - 1;
      if (others === 0) this.#pins.delete(revision);
      else this.#pins.set(revision, others);
    };
  }

  takeFreedBytes(): number {
    const bytes = this.#freedBytes;
    this.#freedBytes = 0;
    return bytes;
  }

  #step(): boolean {
    if (this.#done === this.#target) {
      const collectable = this.#collectable();
      if (collectable <= this.#target) return false;
      this.#target = collectable;
    }
    const target = this.#target;
    while (this.#revision <= target && this.#position >= this.#log.countAt(this.#revision)) {
      this.#revision++;
      this.#position = 0;
    }
    if (this.#revision > target) {
      this.#finish();
      return this.#done < this.#collectable();
    }
    const change = this.#log.changeAt(this.#revision, this.#position++);
    const entry = this.#index.get(change.key);
    if (entry === undefined) return true;
    this.#trim(entry, target);
    const isLastDeletion = this.#revision === target && isTombstone(change) && entry.versionAt(target) === change;
    if (isLastDeletion) this.#lastDeletionsBytes += versionBytes(change);
    return true;
  }

  /** The highest revision up to which versions may be dropped now. */
  #collectable(): number {
    let revision = this.#log.compactRevision;
    for (const pinned of this.#pins.keys()) revision = Math.min(revision, pinned);
    return revision;
  }

  #finish(): void {
    this.#done = this.#target;
    this.#log.forgetBelow(this.#target);
    // A deletion at the target itself is still held, so the next round begins there, whatever the next compact revision
    // is.
    this.#revision = Math.max(this.#target, firstRevision);
    this.#position = 0;
  }

  #trim(entry: KeyEntry, compactRevision: number): void {
    const older = entry.older;
    if (older !== undefined) {
      // The newest version at the compact revision stays, unless it is an earlier deletion.
      let drop = entry.head.modRevision <= compactRevision ? older.length : countUpTo(older, compactRevision) - 1;
      if (drop >= 0 && drop < older.length && isGarbage(older[drop]!, compactRevision)) drop++;
      if (drop > 0) this.#drop(entry, older, drop);
    }
    if (entry.older === undefined && isGarbage(entry.head, compactRevision)) {
      this.#free(entry.head);
      this.#index.remove(entry.head.key);
    }
  }

  #drop(entry: KeyEntry, older: readonly KeyValue[], count: number): void {
    for (let i = 0; i < count; i++) this.#free(older[i]!);
    entry.older = count === older.length ? undefined : older.slice(count);
  }

  #free(version: KeyValue): void {
    const bytes = versionBytes(version);
    this.#freedBytes += bytes;
    if (isTombstone(version) && version.modRevision === this.#done) this.#lastDeletionsBytes -= bytes;
  }
}

/** Whether this version, the newest of its key at the compact revision, can be dropped as well. */
function isGarbage(version: KeyValue, compactRevision: number): boolean {
  return isTombstone(version) && version.modRevision < compactRevision;
}
