import type { Entry } from './lease-backend.ts';

/** Where one entry stands in the line of its name. */
export interface Standing {
  readonly holds: boolean;
  /** Those that keep it waiting, in the order of their tickets. Empty when it holds. */
  readonly ahead: readonly Entry[];
}

/** One who looks at a line: an entry of it, or one that would come next. */
export type Standpoint = Pick<Entry, 'mode' | 'permits' | 'ticket'>;

/**
 * Who holds, decided from the line alone, in the order of tickets: everybody who reads the same line comes to the
 * same answer. Only what stands before an entry counts, so an entry that holds goes on holding until it is gone.
 */
export function standing(entries: readonly Entry[], of: Standpoint): Standing {
  const ahead = entries.filter((entry) => entry.ticket < of.ticket && isInTheWay(entry, of));
  // Of a semaphore so many may stand before one that holds, if there are only such.
  const isFree = ahead.length < of.permits && ahead.every(({ mode }) => mode === 'permit');
  const holds = of.mode === 'permit' ? isFree : ahead.length === 0;
  return holds ? { holds, ahead: [] } : { holds, ahead };
}

/** Those of a line that hold now, in the order of their tickets. */
export function holders(entries: readonly Entry[]): readonly Entry[] {
  return entries.filter((entry) => standing(entries, entry).holds);
}

function isInTheWay(entry: Entry, of: Standpoint): boolean {
  if (of.mode === 'member' || entry.mode === 'member') return false;
  return of.mode !== 'shared' || entry.mode !== 'shared';
}
