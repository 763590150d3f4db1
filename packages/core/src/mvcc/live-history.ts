import type { History } from './history.ts';
import type { KvEvent } from './kv-types.ts';

/**
 * The history of a state that may be replaced as a whole by a newer one. A reader that holds this object continues in
 * the newer state. Revisions never go back, but revisions between the two states may be missing, as after a compaction.
 */
export class LiveHistory implements History {
  readonly #now: () => History;

  constructor(now: () => History) {
    this.#now = now;
  }

  get currentRevision(): number {
    return this.#now().currentRevision;
  }

  get compactRevision(): number {
    return this.#now().compactRevision;
  }

  eventsAt(revision: number): readonly KvEvent[] {
    return this.#now().eventsAt(revision);
  }

  unchangedBefore(key: string, rangeEnd: string, from: number): number {
    return this.#now().unchangedBefore(key, rangeEnd, from);
  }
}
