import type { Entry } from './lease-backend.ts';

/** The position of one entry in the queue of its name. */
export interface QueuePosition {
  readonly holds: boolean;
  /** The entries that keep it waiting, in the order of sequence numbers. Empty when it holds. */
  readonly ahead: readonly Entry[];
}

/** An entry of a queue, or one that would come next. */
export type QueueCandidate = Pick<Entry, 'mode' | 'permits' | 'sequence'>;

/**
 * Decides from the queue alone whether a candidate holds, so all readers of the same queue come to the same answer.
 * Only entries with smaller sequence numbers count, so an entry that holds goes on holding until it is gone.
 */
export function queuePosition(entries: readonly Entry[], candidate: QueueCandidate): QueuePosition {
  const ahead = entries.filter((entry) => entry.sequence < candidate.sequence && isInTheWay(entry, candidate));
  // A semaphore grants its permits together, but never beside an entry of another mode.
  const isFree = ahead.length < candidate.permits && ahead.every(({ mode }) => mode === 'permit');
  const holds = candidate.mode === 'permit' ? isFree : ahead.length === 0;
  return holds ? { holds, ahead: [] } : { holds, ahead };
}

/** The entries of a queue that hold now, in the order of sequence numbers. */
export function holders(entries: readonly Entry[]): readonly Entry[] {
  return entries.filter((entry) => queuePosition(entries, entry).holds);
}

function isInTheWay(entry: Entry, candidate: QueueCandidate): boolean {
  if (candidate.mode === 'member' || entry.mode === 'member') return false;
  return candidate.mode !== 'shared' || entry.mode !== 'shared';
}
