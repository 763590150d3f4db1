import type { AcquireOptions } from '../leases/acquire-options.ts';
import type { Hold } from '../leases/hold.ts';
import type { LeaseRegistry } from '../leases/lease-registry.ts';
import type { QueueTarget } from '../leases/queue-target.ts';

/**
 * Many readers at once, or one writer, in first-come order: a reader waits for a writer that came before it, so neither
 * side can starve the other. A reader can't upgrade to a writer, because two that tried would deadlock. Options and
 * errors are those of `acquire` and `tryAcquire` of the manager.
 */
export interface ReadWriteLock {
  readonly name: string;
  read(options?: AcquireOptions): Promise<Hold>;
  tryRead(options?: AcquireOptions): Promise<Hold | null>;
  write(options?: AcquireOptions): Promise<Hold>;
  tryWrite(options?: AcquireOptions): Promise<Hold | null>;
}

/** Throws a UsageError for an invalid name. */
export function readWriteLock(registry: LeaseRegistry, name: string): ReadWriteLock {
  const reading: QueueTarget = { queue: `rw/${name}`, name, mode: 'shared', permits: 1 };
  const writing: QueueTarget = { ...reading, mode: 'exclusive' };
  registry.check(reading);
  return {
    name,
    read: async (options = {}) => await registry.acquire(reading, options, { defaultWait: 'forever' }),
    tryRead: async (options = {}) => await registry.tryAcquire(reading, options, { defaultWait: 'none' }),
    write: async (options = {}) => await registry.acquire(writing, options, { defaultWait: 'forever' }),
    tryWrite: async (options = {}) => await registry.tryAcquire(writing, options, { defaultWait: 'none' }),
  };
}
