import type { Entry } from '../backend/lease-backend.ts';
import { holders } from '../backend/queue-position.ts';

/** What any client can read of a held lease. It may be out of date, so decide nothing by it. */
export interface LeaseInfo {
  readonly name: string;
  readonly holder: string;
  readonly fencingToken: bigint;
  readonly data: string;
  readonly ttlMs: number;
  /** When it expires unless it is renewed, if the backend knows. */
  readonly expiresInMs: number | undefined;
  /** How many wait for it. */
  readonly waiting: number;
}

/** The first entry that holds, or null if none does. */
export function leaseInfoOf(name: string, queue: readonly Entry[]): LeaseInfo | null {
  const holding = holders(queue);
  const [first] = holding;
  if (first === undefined) return null;
  const { holder, sequence, data, ttlMs, expiresInMs } = first;
  return { name, holder, fencingToken: sequence, data, ttlMs, expiresInMs, waiting: queue.length - holding.length };
}
