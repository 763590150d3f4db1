import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EtcdClient } from './etcd-client.ts';
import { QuotaWatch } from './quota-watch.ts';

const mib = 1024 * 1024;

/** An etcd whose database grows by so much more than is stored, and that tells its size as it is. */
async function storedUntilRefused(quotaBytes: number, growth: number, partBytes: number): Promise<number> {
  let stored = 0;
  const status = (): unknown => ({ dbSize: BigInt(stored * growth), dbSizeInUse: BigInt(stored), dbSizeQuota: 0n });
  const client = { read: () => Promise.resolve(status()) } as unknown as EtcdClient;
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

  test('may take most of it where the database has just its bytes', async () => {
    expect(await storedUntilRefused(2_048 * mib, 1, mib)).toBeGreaterThan(1_800 * mib);
  });
});
