import { describe, test } from 'vitest';
import { checkAbandonedThroughStall, checkRenewedThroughStall } from './robustness/stall-check.ts';

// The tests mostly wait, each for a server of its own.
describe.concurrent('a server that is stalled for three seconds', { timeout: 300_000 }, () => {
  test('expires no lease of one second renewed in time, even if the loop is blocked again at once', async () => {
    await checkRenewedThroughStall('blocked twice with a short pause', 1_000);
  });

  test('extends an unrenewed lease by the length of a suspension, and no more', async () => {
    await checkAbandonedThroughStall('suspended', 1_500);
  });
});
