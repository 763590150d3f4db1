import type { EntryMode } from '../backend/lease-backend.ts';

/** The queue that an entry goes to, and the mode of the entry. */
export interface QueueTarget {
  /** The name that the backend knows. */
  readonly queue: string;
  /** The name that the user knows. */
  readonly name: string;
  readonly mode: EntryMode;
  readonly permits: number;
}
