import type { AcquireOptions } from '../leases/acquire-options.ts';
import type { Hold } from '../leases/hold.ts';
import type { LeaseKeeper } from '../leases/lease-keeper.ts';
import type { LineSpot } from '../leases/line-seeker.ts';

/**
 * Many may read at once, or one may write. Everybody is served in the order of coming, so a reader waits for a writer
 * that came before it, and neither side can keep the other out for ever. Nobody who reads can turn into a writer: two
 * that tried would wait for each other. Options and errors are those of `acquire` and `tryAcquire` of the manager.
 */
export interface ReadWriteLock {
  readonly name: string;
  read(options?: AcquireOptions): Promise<Hold>;
  tryRead(options?: AcquireOptions): Promise<Hold | null>;
  write(options?: AcquireOptions): Promise<Hold>;
  tryWrite(options?: AcquireOptions): Promise<Hold | null>;
}

/** Throws a UsageError if there can be no such name. */
export function readWriteLock(keeper: LeaseKeeper, name: string): ReadWriteLock {
  const reading: LineSpot = { line: `rw/${name}`, name, mode: 'shared', permits: 1 };
  const writing: LineSpot = { ...reading, mode: 'exclusive' };
  keeper.check(reading);
  return {
    name,
    read: async (options = {}) => await keeper.acquire(reading, options, { defaultWait: 'forever' }),
    tryRead: async (options = {}) => await keeper.tryAcquire(reading, options, { defaultWait: 'none' }),
    write: async (options = {}) => await keeper.acquire(writing, options, { defaultWait: 'forever' }),
    tryWrite: async (options = {}) => await keeper.tryAcquire(writing, options, { defaultWait: 'none' }),
  };
}
