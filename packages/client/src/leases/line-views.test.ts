import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { LineViews } from './line-views.ts';

describe('looking at a line together', () => {
  test('everybody gets what was read after asking, in few reads, and one watch is enough', async () => {
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
              // The revision of what was read is the number of the read.
              return Array.from({ length: readsAtMs.length }, () => ({}));
            },
            watch: () => {
              watches++;
              return { close: () => watches-- };
            },
          });
          const { signal } = new AbortController();
          const views = new LineViews({ backend, clock, signal });
          const all = asksAtMs.map(async (askAtMs) => {
            await new Promise<void>((resolve) => clock.setTimer(askAtMs, resolve));
            const view = views.open('line', () => {});
            const askedAtMs = clock.now().monotonicMs;
            const { entries } = await view.look(signal);
            assert.ok(readsAtMs[entries.length - 1]! >= askedAtMs);
            assert.equal(watches, 1);
            view.close();
          });
          await clock.advance(200);
          await Promise.all(all);
          assert.ok(readsAtMs.length <= Math.min(asksAtMs.length, Math.ceil(40 / readMs) + 2));
          assert.equal(watches, 0);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('an abort ends the waiting for it, and a failure is told to all who asked', async () => {
    const clock = new FakeClock();
    const backend = memoryBackend({ clock });
    const { signal } = new AbortController();
    const views = new LineViews({ backend, clock, signal });
    const view = views.open('line', () => {});
    const controller = new AbortController();
    const cancelled = assert.rejects(view.look(controller.signal), /^Error: enough$/);
    const patient = view.look(signal);
    controller.abort(new Error('enough'));
    await cancelled;
    assert.deepEqual((await patient).entries, []);
    await backend.close();
    await Promise.all([1, 2, 3].map(async () => await assert.rejects(view.look(signal), /closed/)));
    view.close();
  });
});
