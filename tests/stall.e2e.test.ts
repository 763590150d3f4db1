import { describe, test } from 'vitest';
import { checkAbandonedThroughStall, checkRenewedThroughStall } from './robustness/stall-check.ts';

// They wait most of the time, each for a server of its own.
describe.concurrent('a server that stands still for three seconds', { timeout: 300_000 }, () => {
  test('ends no lease of a second that is renewed in time, even if the loop is blocked again at once', async () => {
    await checkRenewedThroughStall('blocked twice with hardly a pause', 1_000);
  });

  test('adds the length of a suspension to a lease that nobody renews, and no more', async () => {
    await checkAbandonedThroughStall('suspended', 1_500);
  });
});
