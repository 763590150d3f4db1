import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UsageError } from '../errors/usage-error.ts';
import { createLeaseManager } from '../lease-manager.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';

describe('a semaphore', () => {
  test('never exceeds its permits, and grants every request in the end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 15 }),
        async (permits, worksMs) => {
          const clock = new FakeClock();
          await using leases = createLeaseManager({ backend: memoryBackend({ clock }), clock, ttlMs: 300 });
          const pool = leases.semaphore('pool', permits);
          const order: number[] = [];
          let inside = 0;
          const all = worksMs.map(async (workMs, at) => {
            await using _hold = await pool.acquire();
            order.push(at);
            inside++;
            expect(inside).toBeLessThanOrEqual(permits);
            await new Promise<void>((resolve) => clock.setTimer(workMs, resolve));
            inside--;
          });
          await clock.advance(15 * 600);
          await Promise.all(all);
          expect(order).toStrictEqual([...worksMs.keys()]);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('has at least one permit', async () => {
    await using leases = createLeaseManager({ backend: memoryBackend() });
    for (const permits of [0, -1, 1.5, Number.NaN, Infinity]) {
      expect(() => leases.semaphore('pool', permits)).toThrow(UsageError);
    }
  });
});
