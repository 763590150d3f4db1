import { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Hold } from '../leases/hold.ts';

/**
 * For what a guarded write says that it changed: a number of rows, or whether a transaction's condition was true.
 * Throws a LeaseLostError with the reason `stolen` if that is nothing: a holder with a newer token was there.
 */
export function requireGuarded(changed: number | bigint | boolean | null | undefined, hold: Pick<Hold, 'name'>): void {
  if (changed === undefined || changed === null || !changed) throw new LeaseLostError(hold.name, 'stolen');
}
