import { describe, it } from 'vitest';
import { checkAbandonedThroughStall, checkRenewedThroughStall } from './robustness/stall-check.ts';

describe('an event loop that is blocked for three seconds', () => {
  it('ends no lease of a second that is renewed in time, even if it is blocked again at once', async () => {
    await checkRenewedThroughStall('blocked twice with hardly a pause', 1_000);
  });

  it('adds its length to a lease that nobody renews, and no more', async () => {
    await checkAbandonedThroughStall('blocked', 1_500);
  });
});
