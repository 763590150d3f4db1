import { expect, test } from 'vitest';
import { LargeWork } from './robustness/large-work.ts';
import { RenewalDelay, typicalDelayMs, type MeasuredDelay } from './robustness/renewal-delay.ts';
import { TestedServer } from './robustness/tested-server.ts';

/** `large-lease.long` tests more. */
const keys = 20_000;
const maxDelayMs = 100;

test(
  'revoking a lease with 20,000 keys delays the renewal of another one by 100 ms at most',
  { timeout: 180_000 },
  async () => {
    const server = await TestedServer.start();
    const delay = await RenewalDelay.start(server);
    const work = new LargeWork(server, delay);
    const measured: MeasuredDelay[] = [];
    for (const watchers of [1, 0, 1]) measured.push(await work.revokeLease(keys, watchers));
    expect(typicalDelayMs('revoking a lease with 20,000 keys', measured)).toBeLessThan(maxDelayMs);
    await delay.stop();
    await server.stop();
  },
);
