import type { Signal } from '../time/signal.ts';
import { leaseInfoOf } from './lease-info.ts';
import type { LeaseInfo } from './lease-info.ts';
import type { LeaseRegistry } from './lease-registry.ts';
import type { QueueTarget } from './queue-target.ts';

export interface WatchOptions {
  /** Ends the watch: its reason is thrown. */
  readonly signal?: Signal | undefined;
}

/** Yields the current holder, then again whenever the holder or its data has changed, and null while there is none. */
export async function* watchLease(
  registry: LeaseRegistry,
  target: QueueTarget,
  options: WatchOptions,
): AsyncGenerator<LeaseInfo | null, never> {
  let last: LeaseInfo | null | undefined;
  for await (const entries of registry.readQueue(target, options.signal)) {
    const info = leaseInfoOf(target.name, entries);
    const hasChanged = last === undefined || last?.fencingToken !== info?.fencingToken || last?.data !== info?.data;
    last = info;
    if (hasChanged) yield info;
  }
  throw new Error('a queue is read until an error ends it');
}
