import type { SeenEvent } from '../cluster/lasting-watch.ts';

/** A client was told that it holds the lock with this key, at this revision. */
export interface ClaimedHold {
  readonly key: string;
  readonly revision: number;
}

/**
 * Throws unless each key was there at the revision of its reply, and was the oldest of the queue: so no two clients
 * held at one revision, and they held in the order in which their keys were created. `events`: all of the queue, by
 * revision.
 */
export function judgeHolds(events: readonly SeenEvent[], holds: readonly ClaimedHold[]): void {
  /** Keys in order of creation: a key that is put again keeps its place. */
  const present = new Set<string>();
  let at = 0;
  let oldestBefore = 0;
  const created = new Map<string, number>();
  for (const { key, revision } of holds.toSorted((a, b) => a.revision - b.revision)) {
    for (let event = events[at]; event !== undefined && event.revision <= revision; event = events[at]) {
      if (event.value === undefined) present.delete(event.key);
      else if (!present.has(event.key)) {
        present.add(event.key);
        created.set(event.key, event.revision);
      }
      at += 1;
    }
    const [oldest] = present;
    if (!present.has(key)) throw new Error(`${key} was said to hold at revision ${revision}, and was not there`);
    if (oldest !== key) throw new Error(`${key} was said to hold at revision ${revision}, and ${oldest} was older`);
    const place = created.get(key) ?? 0;
    if (place < oldestBefore) throw new Error(`${key} of revision ${place} held after one of ${oldestBefore}`);
    oldestBefore = place;
  }
}
