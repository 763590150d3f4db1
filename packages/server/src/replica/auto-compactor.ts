import type { StateMachine } from '@tenure/core';
import type { AutoCompaction } from '../config/auto-compaction.ts';
import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';

/** What of the state is looked at. */
export type CompactedState = Pick<
  StateMachine,
  'currentRevision' | 'compactRevision' | 'sizeBytes' | 'sizeInUseBytes' | 'isScrubbed'
>;

export interface AutoCompactorOptions {
  readonly clock: Clock;
  readonly policy: AutoCompaction;
  readonly state: () => CompactedState;
  readonly quotaBytes: number;
  /** The oldest revision that a watch of this server has still to read; undefined while all have read everything. */
  readonly oldestWatched: () => number | undefined;
  /** May reject: then the compaction is tried again when the next is due. */
  readonly compact: (revision: number) => Promise<void>;
}

/** In revision mode the history is looked at this often, as etcd does. */
const revisionIntervalMs = 5 * 60_000;
/** In periodic mode the revision is noted this many times in a retention, but not more rarely than once an hour. */
const samplesPerRetention = 10;
const hourMs = 60 * 60_000;
/** By default the size of the history is looked at this often. */
const sizeIntervalMs = 1_000;
/** By default history may take this share of the quota. A watch that has still to read of it may let it take twice. */
const maxHistoryShare = 1 / 4;
/** Where the whole state takes more than this of the quota, history may take no more than that. */
const pressingShare = 0.8;
const pressedHistoryShare = 1 / 64;

/**
 * Compacts the history by itself: down to the last N revisions, or to what is younger than the retention. Follows
 * etcd's documents (op-guide/maintenance): with a retention above an hour it compacts every hour, else once a
 * retention. By default it is also compacted where it takes too large a share of the quota, to the newer half of it, as
 * often as that takes: see the decision record 020.
 */
export class AutoCompactor {
  readonly #options: AutoCompactorOptions;
  readonly #cancels: (() => void)[] = [];
  /** Periodic mode: the revision at each look, the oldest first, one more than make up a retention. */
  readonly #samples: number[] = [];
  #looks = 0;
  #isCompacting = false;

  constructor(options: AutoCompactorOptions) {
    this.#options = options;
    const { clock, policy } = options;
    const intervalMs =
      policy.mode === 'revision' ? revisionIntervalMs : Math.min(policy.retentionMs, hourMs) / samplesPerRetention;
    // Node turns a longer delay into 1 ms; the intervals stay far below.
    this.#cancels.push(every(clock, intervalMs, () => this.#look(this.#dueByAge(intervalMs))));
    if (policy.mode !== 'bounded') return;
    this.#cancels.push(every(clock, sizeIntervalMs, () => this.#look(this.#dueBySize())));
  }

  stop(): void {
    for (const cancel of this.#cancels) cancel();
  }

  #look(revision: number | undefined): void {
    const { state, compact } = this.#options;
    if (revision === undefined || revision <= state().compactRevision || this.#isCompacting) return;
    this.#isCompacting = true;
    // Where the log takes nothing now, or the server is stopping, nothing is lost by compacting later.
    void compact(revision)
      .catch(() => undefined)
      .finally(() => (this.#isCompacting = false));
  }

  /** The revision to compact to now, if it is time. */
  #dueByAge(intervalMs: number): number | undefined {
    const { policy, state } = this.#options;
    const current = state().currentRevision;
    if (policy.mode === 'revision') return current > policy.retention ? current - policy.retention : undefined;
    const inRetention = Math.ceil(policy.retentionMs / intervalMs);
    this.#samples.push(current);
    if (this.#samples.length <= inRetention) return undefined;
    const oldest = this.#samples.shift();
    this.#looks += 1;
    return this.#looks % samplesPerRetention === 1 ? oldest : undefined;
  }

  /** The newer half of the history stays; if that is still too much, the next look halves it again. */
  #dueBySize(): number | undefined {
    const { state, quotaBytes, oldestWatched } = this.#options;
    const { currentRevision, compactRevision, sizeBytes, sizeInUseBytes, isScrubbed } = state();
    // What was compacted and is not freed yet counts still: only then is it known what there is left.
    if (!isScrubbed) return undefined;
    const historyBytes = sizeBytes - sizeInUseBytes;
    const isPressed = sizeBytes > quotaBytes * pressingShare;
    const maxBytes = quotaBytes * (isPressed ? pressedHistoryShare : maxHistoryShare);
    if (historyBytes <= maxBytes) return undefined;
    const half = currentRevision - Math.floor((currentRevision - Math.max(compactRevision, 0)) / 2);
    if (isPressed || historyBytes > 2 * maxBytes) return half;
    return Math.min(half, oldestWatched() ?? Infinity);
  }
}
