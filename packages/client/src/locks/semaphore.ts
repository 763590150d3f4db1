import { UsageError } from '../errors/usage-error.ts';
import type { AcquireOptions } from '../leases/acquire-options.ts';
import type { Hold } from '../leases/hold.ts';
import type { LeaseKeeper } from '../leases/lease-keeper.ts';
import type { LineSpot } from '../leases/line-seeker.ts';

/**
 * So many may hold a permit at once, served in the order of coming. Each goes by the number of permits that it was
 * made with: whoever uses one name with different numbers lets in as many as the largest of them allows.
 * Options and errors are those of `acquire` and `tryAcquire` of the manager.
 */
export interface Semaphore {
  readonly name: string;
  readonly permits: number;
  acquire(options?: AcquireOptions): Promise<Hold>;
  tryAcquire(options?: AcquireOptions): Promise<Hold | null>;
}

/** Throws a UsageError if there can be no such semaphore. */
export function semaphore(keeper: LeaseKeeper, name: string, permits: number): Semaphore {
  if (!Number.isSafeInteger(permits) || permits < 1) {
    throw new UsageError(`permits must be a whole number of 1 and more, not ${permits}`);
  }
  const spot: LineSpot = { line: `semaphore/${name}`, name, mode: 'permit', permits };
  keeper.check(spot);
  return {
    name,
    permits,
    acquire: async (options = {}) => await keeper.acquire(spot, options, { defaultWait: 'forever' }),
    tryAcquire: async (options = {}) => await keeper.tryAcquire(spot, options, { defaultWait: 'none' }),
  };
}
