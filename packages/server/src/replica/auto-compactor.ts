import type { StateMachine } from '@tenure/core';
import type { AutoCompaction } from '../config/auto-compaction.ts';
import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';

/** The part of the state that the compactor reads. */
export type CompactedState = Pick<
  StateMachine,
  'currentRevision' | 'compactRevision' | 'sizeBytes' | 'sizeInUseBytes' | 'isGarbageCollected'
>;

export interface AutoCompactorOptions {
  readonly clock: Clock;
  readonly policy: AutoCompaction;
  readonly state: () => CompactedState;
  readonly quotaBytes: number;
  /** The oldest revision that a watch of this server has still to read; undefined while no watch lags. */
  readonly oldestWatched: () => number | undefined;
  /** May reject. The compaction is then retried when the next one is due. */
  readonly compact: (revision: number) => Promise<void>;
}

/** The interval of checks in revision mode, as in etcd. */
const revisionIntervalMs = 5 * 60_000;
/** In periodic mode the revision is sampled this many times per retention, and at least once an hour. */
const samplesPerRetention = 10;
const hourMs = 60 * 60_000;
/** The interval of checks of the history's size in the default mode. */
const sizeIntervalMs = 1_000;
/**
 * In the default mode the history may take this share of the quota, or twice that while a watch has still to read it.
 */
const maxHistoryShare = 1 / 4;
/** If the whole state takes more than this share of the quota, the history may take only `pressedHistoryShare`. */
const pressingShare = 0.8;
const pressedHistoryShare = 1 / 64;

/**
 * Compacts the history automatically: down to the last N revisions, or to what is younger than the retention. Follows
 * etcd's documentation (op-guide/maintenance): with a number of revisions it checks every 5 minutes; with a retention
 * above an hour it compacts every hour, else once per retention. The default mode (`bounded`) keeps the retention too,
 * and drops the older half of the history when it takes too large a share of the quota: see the decision record 020.
 */
export class AutoCompactor {
  readonly #options: AutoCompactorOptions;
  readonly #cancels: (() => void)[] = [];
  /** Periodic mode: the revision at each check, oldest first, one more than a retention needs. */
  readonly #samples: number[] = [];
  #looks = 0;
  #isCompacting = false;

  constructor(options: AutoCompactorOptions) {
    this.#options = options;
    const { clock, policy } = options;
    const intervalMs =
      policy.mode === 'revision' ? revisionIntervalMs : Math.min(policy.retentionMs, hourMs) / samplesPerRetention;
    // setTimeout turns a delay above 2^31 ms into 1 ms; the intervals stay far below.
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
    // If the log rejects the compaction, or the server is stopping, compacting later loses nothing.
    void compact(revision)
      .catch(() => undefined)
      .finally(() => (this.#isCompacting = false));
  }

  /** The revision to compact to now, if a compaction is due. */
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

  /** Keeps the newer half of the history. If that is still too much, the next check halves it again. */
  #dueBySize(): number | undefined {
    const { state, quotaBytes, oldestWatched } = this.#options;
    const { currentRevision, compactRevision, sizeBytes, sizeInUseBytes, isGarbageCollected } = state();
    // Compacted history that is not freed yet still counts. The size of the rest is known only after garbage
    // collection.
    if (!isGarbageCollected) return undefined;
    const historyBytes = sizeBytes - sizeInUseBytes;
    const isPressed = sizeBytes > quotaBytes * pressingShare;
    const maxBytes = quotaBytes * (isPressed ? pressedHistoryShare : maxHistoryShare);
    if (historyBytes <= maxBytes) return undefined;
    const half = currentRevision - Math.floor((currentRevision - Math.max(compactRevision, 0)) / 2);
    if (isPressed || historyBytes > 2 * maxBytes) return half;
    return Math.min(half, oldestWatched() ?? Infinity);
  }
}
