import { UsageError } from '../errors/usage-error.ts';
import type { AcquireOptions } from '../leases/acquire-options.ts';
import type { Hold } from '../leases/hold.ts';
import type { LeaseRegistry } from '../leases/lease-registry.ts';
import type { QueueTarget } from '../leases/queue-target.ts';

/**
 * At most `permits` callers hold a permit at once, in first-come order. Each caller uses the number of permits that its
 * object was created with: with different numbers for one name, as many can hold as the largest number allows. Options
 * and errors are those of `acquire` and `tryAcquire` of the manager.
 */
export interface Semaphore {
  readonly name: string;
  readonly permits: number;
  acquire(options?: AcquireOptions): Promise<Hold>;
  tryAcquire(options?: AcquireOptions): Promise<Hold | null>;
}

/** Throws a UsageError for an invalid name or number. */
export function semaphore(registry: LeaseRegistry, name: string, permits: number): Semaphore {
  if (!Number.isSafeInteger(permits) || permits < 1) {
    throw new UsageError(`permits must be a whole number of at least 1, not ${permits}`);
  }
  const target: QueueTarget = { queue: `semaphore/${name}`, name, mode: 'permit', permits };
  registry.check(target);
  return {
    name,
    permits,
    acquire: async (options = {}) => await registry.acquire(target, options, { defaultWait: 'forever' }),
    tryAcquire: async (options = {}) => await registry.tryAcquire(target, options, { defaultWait: 'none' }),
  };
}
