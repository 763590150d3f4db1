import { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Hold } from '../leases/hold.ts';

/**
 * Checks the result of a guarded write: a number of rows, or whether a transaction's condition was true. Throws a
 * LeaseLostError with the reason `stolen` if the write changed nothing, because a newer token was used.
 */
export function requireGuarded(changed: number | bigint | boolean | null | undefined, hold: Pick<Hold, 'name'>): void {
  if (changed === undefined || changed === null || !changed) throw new LeaseLostError(hold.name, 'stolen');
}
