import type { KeyEntry } from './key-entry.ts';
import { countUpTo, isTombstone } from './key-entry.ts';
import type { KeyIndex } from './key-index.ts';
import type { KeyValue } from './kv-types.ts';
import { firstRevision } from './revision-log.ts';
import type { RevisionLog } from './revision-log.ts';
import { versionBytes } from './version-bytes.ts';

/**
 * Frees what a compaction has hidden, in slices. It walks the history, not the keys: only a key that changed at or
 * before the compact revision can have a version to lose, so the work is proportional to what was written and not to
 * what is stored. No read, event, hash or snapshot depends on how far it has come.
 */
export class Scrubber {
  readonly #index: KeyIndex;
  readonly #log: RevisionLog;
  /** The next change to look at. */
  #revision: number;
  #position = 0;
  /** The compact revision that this round works for. A later compaction waits for the next round. */
  #target = -1;
  /** The compact revision up to which everything has been done. */
  #done = -1;
  /** How many read from each revision on. */
  readonly #pins = new Map<number, number>();
  #freedBytes = 0;
  /** Of the deletions at `#done`. */
  #lastDeletionsBytes = 0;

  constructor(index: KeyIndex, log: RevisionLog) {
    this.#index = index;
    this.#log = log;
    this.#revision = log.firstHeldRevision;
  }

  /** Looks at up to `maxSteps` changes. Returns whether there is more to do now. */
  run(maxSteps: number): boolean {
    for (let step = 0; step < maxSteps; step++) {
      if (!this.#step()) return false;
    }
    return this.#done < this.#scrubbable();
  }

  /** Whether what is left to do waits for a pin to end. */
  get isPaused(): boolean {
    return this.#scrubbable() < this.#log.compactRevision;
  }

  /** Whether all that was compacted has been freed. */
  get isDone(): boolean {
    return this.#done >= this.#log.compactRevision;
  }

  /**
   * What the deletions take that are kept for watches at the compact revision. Only the next compaction frees them, and
   * that needs a newer revision.
   */
  get lastDeletionsBytes(): number {
    return this.#lastDeletionsBytes;
  }

  /**
   * Keeps what a read at `revision`, which is not compacted yet, or at a later one needs, and the history from there
   * on, until the function that it returns is called. What was compacted below it is scrubbed meanwhile, so that reads
   * that overlap for ever hold up nothing for ever.
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
      const scrubbable = this.#scrubbable();
      if (scrubbable <= this.#target) return false;
      this.#target = scrubbable;
    }
    const target = this.#target;
    while (this.#revision <= target && this.#position >= this.#log.countAt(this.#revision)) {
      this.#revision++;
      this.#position = 0;
    }
    if (this.#revision > target) {
      this.#finish();
      return this.#done < this.#scrubbable();
    }
    const change = this.#log.changeAt(this.#revision, this.#position++);
    const entry = this.#index.get(change.key);
    if (entry === undefined) return true;
    this.#trim(entry, target);
    const isLastDeletion = this.#revision === target && isTombstone(change) && entry.versionAt(target) === change;
    if (isLastDeletion) this.#lastDeletionsBytes += versionBytes(change);
    return true;
  }

  /** Up to where versions may be dropped now. */
  #scrubbable(): number {
    let revision = this.#log.compactRevision;
    for (const pinned of this.#pins.keys()) revision = Math.min(revision, pinned);
    return revision;
  }

  #finish(): void {
    this.#done = this.#target;
    this.#log.forgetBelow(this.#target);
    // A deletion at the target itself is still held, so the next round begins there, wherever the log is compacted to.
    this.#revision = Math.max(this.#target, firstRevision);
    this.#position = 0;
  }

  #trim(entry: KeyEntry, compactRevision: number): void {
    const older = entry.older;
    if (older !== undefined) {
      // The newest version at the compact revision stays, unless it says that the key was gone before.
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

/** Whether this version, the newest of its key at the compact revision, is not needed either. */
function isGarbage(version: KeyValue, compactRevision: number): boolean {
  return isTombstone(version) && version.modRevision < compactRevision;
}
