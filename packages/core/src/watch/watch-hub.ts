import type { History } from '../mvcc/history.ts';
import type { KvEvent } from '../mvcc/kv-types.ts';
import { rangeEndOf } from './watch-range.ts';
import { WatcherIndex } from './watcher-index.ts';
import { Watcher, type WatchSpec } from './watcher.ts';

/** Bounds the work of one call, so that the caller decides what else runs in between. */
export interface WatchBudget {
  /** Events read or handed out. A revision is never split, so the last one may exceed it. */
  readonly maxEvents: number;
  /** Bytes of keys and values handed out. The last revision may exceed it as well. */
  readonly maxBytes: number;
}

/** The events of one synced watcher in the revisions just passed: whole revisions, ascending. */
export interface WatchBatch<Owner> {
  readonly watcher: Watcher<Owner>;
  readonly events: readonly KvEvent[];
}

export interface Advanced<Owner> {
  /** One for each synced watcher with an event. */
  readonly batches: readonly WatchBatch<Owner>[];
  /** Watchers that have become lagging without a batch: the history lost revisions before they saw them. */
  readonly overtaken: readonly Watcher<Owner>[];
}

export type Pulled =
  /** Whole revisions, ascending; may be empty when the budget was spent on events outside the watch. */
  | { readonly kind: 'events'; readonly events: readonly KvEvent[] }
  /** The watcher is closed: its next revision has been compacted. */
  | { readonly kind: 'compacted'; readonly compactRevision: number };

/**
 * Events outside the watch that are read one after the other before the history is asked what can be skipped. That
 * lookup costs as much as reading some dozens of events, so it comes soon where the last one skipped many, and late
 * where it did not.
 */
const idleEvents = { whereSparse: 8, whereDense: 256 } as const;

/**
 * Decides which watcher gets which event, and from which revision. It buffers no events: a watcher is a cursor.
 *
 * Each watcher gets every matching event exactly once, in the order of the history, and a revision is never split
 * between two batches. The caller has one obligation: before the next call of `advance`, each batch that `advance`
 * returned is either sent, or given back with `fallBehind`.
 */
export class WatchHub<Owner> {
  readonly #history: History;
  readonly #synced = new WatcherIndex<Owner>();
  #laggingCount = 0;
  #revision: number;

  constructor(history: History) {
    this.#history = history;
    this.#revision = history.currentRevision;
  }

  /** Events up to and including this revision have been handed out to the synced watchers. */
  get revision(): number {
    return this.#revision;
  }

  get watcherCount(): number {
    return this.#synced.size + this.#laggingCount;
  }

  get laggingCount(): number {
    return this.#laggingCount;
  }

  /**
   * Adds a watcher, synced or lagging. A watcher that starts below the compact revision is added as well; its first
   * pull reports that it is compacted.
   */
  watch(owner: Owner, spec: WatchSpec): Watcher<Owner> {
    const nextRevision = spec.startRevision === 0 ? this.#history.currentRevision + 1 : spec.startRevision;
    const state = nextRevision > this.#revision ? 'synced' : 'lagging';
    const watcher = new Watcher(owner, spec, nextRevision, state);
    if (state === 'synced') this.#synced.add(watcher);
    else this.#laggingCount += 1;
    return watcher;
  }

  /** Idempotent. An unsent batch of the watcher must not be sent. */
  cancel(watcher: Watcher<Owner>): void {
    if (watcher.state === 'synced') this.#synced.delete(watcher);
    else if (watcher.state === 'lagging') this.#laggingCount -= 1;
    watcher.state = 'closed';
  }

  /** Reads new revisions of the history and returns their events for the synced watchers. */
  advance(budget: WatchBudget): Advanced<Owner> {
    const history = this.#history;
    if (this.#synced.size === 0) {
      this.#revision = history.currentRevision;
      return { batches: [], overtaken: [] };
    }
    if (this.#revision + 1 < history.compactRevision) return { batches: [], overtaken: this.#skipAhead() };
    const events = new Map<Watcher<Owner>, KvEvent[]>();
    let eventCount = 0;
    let byteCount = 0;
    while (this.#revision < history.currentRevision && eventCount < budget.maxEvents && byteCount < budget.maxBytes) {
      const revision = this.#revision + 1;
      for (const event of history.eventsAt(revision)) {
        const before = eventCount;
        this.#synced.visit(event.kv.key, (watcher) => {
          if (watcher.nextRevision > revision || !watcher.admits(event)) return;
          const own = events.get(watcher);
          if (own === undefined) events.set(watcher, [event]);
          else own.push(event);
          eventCount += 1;
        });
        if (eventCount > before) byteCount += eventBytes(event, true);
        eventCount += 1;
      }
      this.#revision = revision;
    }
    return { batches: Array.from(events, ([watcher, own]) => ({ watcher, events: own })), overtaken: [] };
  }

  /** Gives back an unsent batch: the watcher reads it from the history again when its reader is ready. */
  fallBehind(batch: WatchBatch<Owner>): void {
    const { watcher, events } = batch;
    const first = events[0];
    if (watcher.state !== 'synced' || first === undefined)
      throw new Error('watch hub: only a synced watcher falls behind');
    this.#lag(watcher, first.kv.modRevision);
  }

  /** Continues a lagging watcher. Its state then tells whether it has caught up. */
  pull(watcher: Watcher<Owner>, budget: WatchBudget): Pulled {
    if (watcher.state !== 'lagging') throw new Error(`watch hub: a ${watcher.state} watcher has nothing to pull`);
    const history = this.#history;
    if (watcher.nextRevision < history.compactRevision) {
      this.cancel(watcher);
      return { kind: 'compacted', compactRevision: history.compactRevision };
    }
    const events: KvEvent[] = [];
    let revision = this.#skip(watcher, watcher.nextRevision);
    let maxIdle = idleLimit(revision - watcher.nextRevision);
    let idle = 0;
    let eventCount = 0;
    let byteCount = 0;
    while (revision <= this.#revision && eventCount < budget.maxEvents && byteCount < budget.maxBytes) {
      const before = events.length;
      const here = history.eventsAt(revision);
      for (const event of here) {
        if (!watcher.wants(event)) continue;
        events.push(event);
        byteCount += eventBytes(event, watcher.prevKv);
      }
      eventCount += 1 + here.length;
      idle = events.length > before ? 0 : idle + 1 + here.length;
      revision += 1;
      if (idle < maxIdle) continue;
      const skippedTo = this.#skip(watcher, revision);
      maxIdle = idleLimit(skippedTo - revision);
      revision = skippedTo;
      idle = 0;
    }
    watcher.nextRevision = revision;
    if (revision > this.#revision) this.#catchUp(watcher);
    return { kind: 'events', events };
  }

  /** Skips revisions without a change in the watcher's range, as far as the history can find them cheaply. */
  #skip(watcher: Watcher<Owner>, from: number): number {
    if (from > this.#revision) return from;
    const { range } = watcher;
    const unchangedBefore = this.#history.unchangedBefore(range.start, rangeEndOf(range), from);
    return Math.min(unchangedBefore, this.#revision + 1);
  }

  /**
   * The history has lost revisions that the synced watchers have not seen: a snapshot replaced it, or it was compacted
   * up to its head before `advance` was called. The watchers become lagging, so that each reports that its revision is
   * compacted.
   */
  #skipAhead(): Watcher<Owner>[] {
    const overtaken = Array.from(this.#synced);
    for (const watcher of overtaken) this.#lag(watcher, Math.max(watcher.nextRevision, this.#revision + 1));
    this.#revision = this.#history.currentRevision;
    return overtaken;
  }

  #lag(watcher: Watcher<Owner>, nextRevision: number): void {
    this.#synced.delete(watcher);
    watcher.state = 'lagging';
    watcher.nextRevision = nextRevision;
    this.#laggingCount += 1;
  }

  #catchUp(watcher: Watcher<Owner>): void {
    this.#laggingCount -= 1;
    watcher.state = 'synced';
    this.#synced.add(watcher);
  }
}

function idleLimit(skipped: number): number {
  return skipped >= idleEvents.whereDense ? idleEvents.whereSparse : idleEvents.whereDense;
}

function eventBytes(event: KvEvent, withPrevious: boolean): number {
  const previous = withPrevious ? event.prevKv : undefined;
  const previousBytes = previous === undefined ? 0 : previous.key.length + previous.value.length;
  return event.kv.key.length + event.kv.value.length + previousBytes;
}
