import type { Signal } from '../time/signal.ts';
import { leaseInfoOf } from './lease-info.ts';
import type { LeaseInfo } from './lease-info.ts';
import type { LeaseKeeper } from './lease-keeper.ts';
import type { LineSpot } from './line-seeker.ts';

export interface WatchOptions {
  /** Ends the watching: its reason is thrown. */
  readonly signal?: Signal | undefined;
}

/** Who holds, first as it is now, and then whenever another one does, its data has changed, or nobody does. */
export async function* watchLease(
  keeper: LeaseKeeper,
  spot: LineSpot,
  options: WatchOptions,
): AsyncGenerator<LeaseInfo | null, never> {
  let last: LeaseInfo | null | undefined;
  for await (const line of keeper.read(spot, options.signal)) {
    const info = leaseInfoOf(spot.name, line);
    const isNews = last === undefined || last?.fencingToken !== info?.fencingToken || last?.data !== info?.data;
    last = info;
    if (isNews) yield info;
  }
  throw new Error('a line is read until an error ends it');
}
