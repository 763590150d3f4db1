import type { History } from './history.ts';
import type { KeyIndex } from './key-index.ts';
import type { KvEvent } from './kv-types.ts';
import type { RevisionLog } from './revision-log.ts';

/**
 * The number of keys of a range whose versions are searched for the next change; a larger range is searched by
 * revision.
 */
const maxSearchedKeys = 256;

/** The history for readers: by revision from the log, and by key from the index. */
export class KeyHistory implements History {
  readonly #log: RevisionLog;
  readonly #index: KeyIndex;

  constructor(log: RevisionLog, index: KeyIndex) {
    this.#log = log;
    this.#index = index;
  }

  get currentRevision(): number {
    return this.#log.currentRevision;
  }

  get compactRevision(): number {
    return this.#log.compactRevision;
  }

  eventsAt(revision: number): readonly KvEvent[] {
    return this.#log.eventsAt(revision);
  }

  unchangedBefore(key: string, rangeEnd: string, from: number): number {
    let first = Number.POSITIVE_INFINITY;
    let searched = 0;
    this.#index.visitRange(key, rangeEnd, (entry) => {
      searched += 1;
      first = searched > maxSearchedKeys ? from : Math.min(first, entry.firstChangeFrom(from));
      return first > from;
    });
    return first;
  }
}
