import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { SharedQueueReads } from './shared-queue-reads.ts';

describe('shared reads of a queue', () => {
  test('each caller gets a read that began after its call, with few reads and one watch in all', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 30 }),
        async (asksAtMs, readMs) => {
          const clock = new FakeClock();
          const inner = memoryBackend({ clock });
          const readsAtMs: number[] = [];
          let watches = 0;
          const backend = Object.assign(Object.create(inner) as typeof inner, {
            list: async () => {
              readsAtMs.push(clock.now().monotonicMs);
              await new Promise<void>((resolve) => clock.setTimer(readMs, resolve));
              // The revision of a result is the number of the read.
              return Array.from({ length: readsAtMs.length }, () => ({}));
            },
            watch: () => {
              watches++;
              return { close: () => watches-- };
            },
          });
          const { signal } = new AbortController();
          const queueReads = new SharedQueueReads({ backend, clock, signal });
          const all = asksAtMs.map(async (askAtMs) => {
            await new Promise<void>((resolve) => clock.setTimer(askAtMs, resolve));
            const subscription = queueReads.subscribe('queue', () => {});
            const askedAtMs = clock.now().monotonicMs;
            const { entries } = await subscription.read(signal);
            expect(readsAtMs[entries.length - 1]!).toBeGreaterThanOrEqual(askedAtMs);
            expect(watches).toBe(1);
            subscription.close();
          });
          await clock.advance(200);
          await Promise.all(all);
          expect(readsAtMs.length).toBeLessThanOrEqual(Math.min(asksAtMs.length, Math.ceil(40 / readMs) + 2));
          expect(watches).toBe(0);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('an abort ends only the wait of its caller, and a failure rejects all callers', async () => {
    const clock = new FakeClock();
    const backend = memoryBackend({ clock });
    const { signal } = new AbortController();
    const queueReads = new SharedQueueReads({ backend, clock, signal });
    const subscription = queueReads.subscribe('queue', () => {});
    const controller = new AbortController();
    const cancelled = subscription.read(controller.signal).catch((error: unknown) => error);
    const patient = subscription.read(signal);
    controller.abort(new Error('enough'));
    expect(await cancelled).toMatchObject({ message: 'enough' });
    expect((await patient).entries).toEqual([]);
    await backend.close();
    await Promise.all([1, 2, 3].map(async () => await expect(subscription.read(signal)).rejects.toThrow(/closed/)));
    subscription.close();
  });
});
