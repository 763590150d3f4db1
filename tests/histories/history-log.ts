import type { KeyVersion } from './kv-operation.ts';

/** One event of the store's history, as reported by a watch. */
export interface HistoryEvent {
  readonly revision: number;
  readonly key: string;
  /** Undefined for a delete. */
  readonly version: KeyVersion | undefined;
}

/** Every event of a store from its first revision on, which determines the content at each revision. */
export class HistoryLog {
  readonly events: readonly HistoryEvent[];
  /** The last revision; 1 is that of an empty store. */
  readonly head: number;
  /** Contradictions within the log. */
  readonly problems: readonly string[];
  readonly #byRevision = new Map<number, HistoryEvent[]>();
  readonly #byKey = new Map<string, HistoryEvent[]>();

  constructor(events: readonly HistoryEvent[]) {
    this.events = events;
    const problems: string[] = [];
    let last = 1;
    for (const event of events) {
      const { revision, key } = event;
      if (revision < last) problems.push(`revision ${revision} is reported after ${last}`);
      else if (revision > last + 1) problems.push(`revision ${revision} is reported directly after ${last}`);
      if (this.eventsAt(revision).some((other) => other.key === key)) {
        problems.push(`${key} changes twice at revision ${revision}`);
      }
      const wrong = wrongVersion(event, this.versionAt(key, revision));
      if (wrong !== undefined) problems.push(`${key} at revision ${revision}: ${wrong}`);
      append(this.#byRevision, revision, event);
      append(this.#byKey, key, event);
      last = Math.max(last, revision);
    }
    this.head = last;
    this.problems = problems;
  }

  eventsAt(revision: number): readonly HistoryEvent[] {
    return this.#byRevision.get(revision) ?? [];
  }

  /** The key's version when that revision was the last; undefined if the key did not exist. */
  versionAt(key: string, revision: number): KeyVersion | undefined {
    const events = this.#byKey.get(key) ?? [];
    let low = 0;
    for (let high = events.length; low < high;) {
      const middle = (low + high) >>> 1;
      if ((events[middle] as HistoryEvent).revision <= revision) low = middle + 1;
      else high = middle;
    }
    return events[low - 1]?.version;
  }

  /** The keys that were attached to a lease when that revision was the last. */
  keysOf(lease: bigint, revision: number): string[] {
    return [...this.#byKey.keys()].filter((key) => this.versionAt(key, revision)?.lease === lease);
  }
}

/** What is wrong with the numbers of a version, given the previous one. */
function wrongVersion({ revision, version }: HistoryEvent, before: KeyVersion | undefined): string | undefined {
  if (version === undefined) return before === undefined ? 'a key is deleted that did not exist' : undefined;
  const { modRevision, createRevision, version: count } = version;
  const expected = [revision, before?.createRevision ?? revision, (before?.version ?? 0) + 1];
  const told = [modRevision, createRevision, count];
  if (told.join() === expected.join()) return undefined;
  return `mod_revision, create_revision, version are ${told.join(', ')} and should be ${expected.join(', ')}`;
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
