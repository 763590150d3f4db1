import type { KvEvent } from '../mvcc/kv-types.ts';
import { rangeHolds, type WatchRange } from './watch-range.ts';

export interface WatchSpec {
  readonly range: WatchRange;
  /**
   * The first revision to report; 0: the next one after the watch was created. Never negative: the API layer refuses
   * that.
   */
  readonly startRevision: number;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  /** Whether events will be sent with prevKv. Here it only counts towards the size of a batch. */
  readonly prevKv: boolean;
}

/**
 * One watch: a cursor into the key history, and its filters.
 *
 * synced: it has been handed every event up to the hub's revision, and new events find it by key.
 * lagging: it reads the history from `nextRevision` on, whenever its reader can accept events.
 * closed: it was cancelled, or a revision that it had not read was compacted.
 */
export class Watcher<Owner> {
  readonly owner: Owner;
  range: WatchRange;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
  /**
   * No older revision is needed. Exact while lagging; a lower bound while synced, where the hub's revision is the
   * cursor.
   */
  nextRevision: number;
  state: 'synced' | 'lagging' | 'closed';
  /** Where the index has it, while it is synced; for the index alone. */
  group: Watcher<Owner>[] | undefined = undefined;
  placeInGroup = 0;

  constructor(owner: Owner, spec: WatchSpec, nextRevision: number, state: 'synced' | 'lagging') {
    this.owner = owner;
    this.range = spec.range;
    this.noPut = spec.noPut;
    this.noDelete = spec.noDelete;
    this.prevKv = spec.prevKv;
    this.nextRevision = nextRevision;
    this.state = state;
  }

  /** Whether the filters accept an event; its key and revision are not checked. */
  admits(event: KvEvent): boolean {
    return event.type === 'put' ? !this.noPut : !this.noDelete;
  }

  wants(event: KvEvent): boolean {
    return this.admits(event) && rangeHolds(this.range, event.kv.key);
  }
}
