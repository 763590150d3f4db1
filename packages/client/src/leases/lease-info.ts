import type { Entry } from '../backend/lease-backend.ts';
import { holders } from '../backend/standing.ts';

/** What everybody can know of a lease that is held. It may have changed since; nothing can be decided by it. */
export interface LeaseInfo {
  readonly name: string;
  readonly holder: string;
  readonly fencingToken: bigint;
  readonly data: string;
  readonly ttlMs: number;
  /** When it ends unless it is renewed, where the backend can tell. */
  readonly expiresInMs: number | undefined;
  /** How many wait for it. */
  readonly waiting: number;
}

/** The one that stands first, or null if nobody holds it. */
export function leaseInfoOf(name: string, line: readonly Entry[]): LeaseInfo | null {
  const holding = holders(line);
  const [first] = holding;
  if (first === undefined) return null;
  const { holder, ticket, data, ttlMs, expiresInMs } = first;
  return { name, holder, fencingToken: ticket, data, ttlMs, expiresInMs, waiting: line.length - holding.length };
}
