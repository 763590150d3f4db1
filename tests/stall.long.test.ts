import { describe, it } from 'vitest';
import { checkAbandonedThroughStall, checkRenewedThroughStall } from './robustness/stall-check.ts';
import { stalls } from './robustness/stalls.ts';

describe.each(Object.keys(stalls) as (keyof typeof stalls)[])('a server that is %s', (kind) => {
  it.each([1_000, 2_000])('ends no lease of %i ms that is renewed in time', async (ttlMs) => {
    await checkRenewedThroughStall(kind, ttlMs);
  });

  it('adds its length to a lease that nobody renews, and no more', async () => {
    await checkAbandonedThroughStall(kind, 2_000);
  });
});
