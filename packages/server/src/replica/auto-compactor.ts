import type { AutoCompaction } from '../config/auto-compaction.ts';

export interface AutoCompactorOptions {
  readonly policy: AutoCompaction;
  readonly currentRevision: () => number;
  /** May reject: then the compaction is tried again when the next is due. */
  readonly compact: (revision: number) => Promise<void>;
}

/** In revision mode the history is looked at this often, as etcd does. */
const revisionIntervalMs = 5 * 60_000;
/** In periodic mode the revision is noted this many times in a retention, but not more rarely than once an hour. */
const samplesPerRetention = 10;
const hourMs = 60 * 60_000;

/**
 * Compacts the history by itself: down to the last N revisions, or to what is younger than the retention. Follows
 * etcd's documents (op-guide/maintenance): with a retention above an hour it compacts every hour, else once a
 * retention.
 */
export class AutoCompactor {
  readonly #options: AutoCompactorOptions;
  readonly #timer: NodeJS.Timeout;
  /** Periodic mode: the revision at each look, the oldest first, one more than make up a retention. */
  readonly #samples: number[] = [];
  #compactedTo = 0;
  #looks = 0;

  constructor(options: AutoCompactorOptions) {
    this.#options = options;
    const { policy } = options;
    const intervalMs =
      policy.mode === 'revision' ? revisionIntervalMs : Math.min(policy.retentionMs, hourMs) / samplesPerRetention;
    // Node turns a longer delay into 1 ms; both intervals stay far below.
    this.#timer = setInterval(() => void this.#look(intervalMs), intervalMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(intervalMs: number): Promise<void> {
    const revision = this.#due(intervalMs);
    if (revision === undefined || revision <= this.#compactedTo) return;
    const before = this.#compactedTo;
    this.#compactedTo = revision;
    try {
      await this.#options.compact(revision);
    } catch {
      // The log takes nothing now, or the server is stopping. Nothing is lost by compacting later.
      this.#compactedTo = before;
    }
  }

  /** The revision to compact to now, if it is time. */
  #due(intervalMs: number): number | undefined {
    const { policy, currentRevision } = this.#options;
    const current = currentRevision();
    if (policy.mode === 'revision') return current > policy.retention ? current - policy.retention : undefined;
    const inRetention = Math.ceil(policy.retentionMs / intervalMs);
    this.#samples.push(current);
    if (this.#samples.length <= inRetention) return undefined;
    const oldest = this.#samples.shift();
    this.#looks += 1;
    return this.#looks % samplesPerRetention === 1 ? oldest : undefined;
  }
}
