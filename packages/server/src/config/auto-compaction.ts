import { ConfigError } from './config-error.ts';
import { parseGoDurationMs } from '@tenure/protocol';

export type AutoCompactionMode = 'periodic' | 'revision';

/** The history that is kept when the server compacts by itself. */
export type AutoCompaction =
  /** The revisions of the last `retentionMs`. */
  | { readonly mode: 'periodic'; readonly retentionMs: number }
  /** The last `retention` revisions. */
  | { readonly mode: 'revision'; readonly retention: number }
  /** The default: the revisions of the last `retentionMs`, or fewer if they would take too much of the quota. */
  | { readonly mode: 'bounded'; readonly retentionMs: number };

/** A watch that was disconnected for less than this resumes. */
const defaultRetentionMs = 3_600_000;

/**
 * The retention in etcd's notation: whole hours or a duration for `periodic`, a count for `revision`, 0 for never.
 * Without one the history is bounded, unless the mode is `revision`: then everything is kept, as in etcd. Throws
 * ConfigError with the reason.
 */
export function parseAutoCompaction(mode: AutoCompactionMode, retention: string): AutoCompaction | undefined {
  const count = /^\d+$/.test(retention) ? Number(retention) : undefined;
  if (retention === '' && mode === 'periodic') return { mode: 'bounded', retentionMs: defaultRetentionMs };
  if (count === 0 || retention === '') return undefined;
  if (mode === 'revision') {
    if (count === undefined || !Number.isSafeInteger(count)) {
      throw new ConfigError('must be a count of revisions, such as 1000, with --auto-compaction-mode revision');
    }
    return { mode, retention: count };
  }
  const retentionMs = count === undefined ? parseGoDurationMs(retention) : count * 3_600_000;
  if (retentionMs === undefined || !Number.isSafeInteger(retentionMs)) {
    throw new ConfigError('must be hours, such as 1, or a duration, such as 30m');
  }
  if (retentionMs === 0) return undefined;
  // Compaction runs ten times within the retention; a shorter interval would leave time for nothing else.
  if (retentionMs < 1000) throw new ConfigError('must be at least 1s (0 turns automatic compaction off)');
  return { mode, retentionMs };
}
