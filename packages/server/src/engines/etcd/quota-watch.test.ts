import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EtcdLogClient } from './etcd-log-client.ts';
import { QuotaWatch } from './quota-watch.ts';

const mib = 1024 * 1024;

/** An etcd whose database grows by a multiple of the stored bytes, and that reports its exact size. */
async function storedUntilRefused(quotaBytes: number, growth: number, partBytes: number): Promise<number> {
  let stored = 0;
  const status = (): unknown => ({ dbSize: BigInt(stored * growth), dbSizeInUse: BigInt(stored), dbSizeQuota: 0n });
  const client = { read: () => Promise.resolve(status()) } as unknown as EtcdLogClient;
  const watch = new QuotaWatch(client, quotaBytes);
  watch.begin();
  for (;;) {
    try {
      await watch.admit(partBytes);
    } catch {
      return stored;
    }
    stored += partBytes;
    expect(stored * growth).toBeLessThan(quotaBytes);
  }
}

describe('a snapshot in etcd', () => {
  test('stops before the quota, however much more than its bytes the database grows', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 16, max: 4_096 }),
        fc.integer({ min: 100, max: 300 }),
        fc.constantFrom(64 * 1024, mib),
        async (quotaMib, growthPercent, partBytes) => {
          await storedUntilRefused(quotaMib * mib, growthPercent / 100, partBytes);
        },
      ),
      { numRuns: 50 },
    );
  });

  test('may use most of the quota when the database does not grow faster', async () => {
    expect(await storedUntilRefused(2_048 * mib, 1, mib)).toBeGreaterThan(1_800 * mib);
  });
});
