import { describe, inject, test } from 'vitest';
import { checkAbandonedThroughStall, checkRenewedThroughStall } from './robustness/stall-check.ts';
import { stalls } from './robustness/stalls.ts';

const ttlsMs = { commit: [1_000], ci: [1_000], soak: [1_000, 2_000] }[inject('effort')];
const limits = { timeout: 900_000 };

// The tests mostly wait, each for a server of its own.
for (const kind of Object.keys(stalls) as (keyof typeof stalls)[]) {
  describe.concurrent(`a server that is ${kind}`, limits, () => {
    test.each(ttlsMs)('expires no lease of %i ms that is renewed in time', async (ttlMs) => {
      await checkRenewedThroughStall(kind, ttlMs);
    });

    test('extends an unrenewed lease by the length of the stall, and no more', async () => {
      await checkAbandonedThroughStall(kind, 2_000);
    });
  });
}
