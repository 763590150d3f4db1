import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createLeaseManager } from '../lease-manager.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { ProcessRef } from '../time/process-ref.ts';
import { cancellableIterator } from './cancellable-iterator.ts';

describe('a cancellable iterator', () => {
  test('ends at once also during a pending read, and leaves no listener behind', async () => {
    const clock = new FakeClock();
    const backend = memoryBackend({ clock });
    const leases = createLeaseManager({ backend, clock });
    const group = await leases.membership('group');
    const { signal } = new AbortController();
    for (const options of [{}, { signal }]) {
      for (const watched of [
        leases.watch('job', options),
        leases.election('job').observe(options),
        group.watch(options),
      ]) {
        const iterator = watched[Symbol.asyncIterator]();
        expect((await iterator.next()).done).toBe(false);
        const pending = iterator.next();
        // No time passes until here.
        expect(await iterator.return!()).toStrictEqual({ done: true, value: undefined });
        expect(await pending).toStrictEqual({ done: true, value: undefined });
        expect(await iterator.next()).toStrictEqual({ done: true, value: undefined });
        expect(getEventListeners(signal, 'abort').length).toBe(0);
      }
      for await (const _ of leases.watch('job', options)) break;
      const unread = leases.watch('job', options)[Symbol.asyncIterator]();
      await unread.return!();
      expect((await unread.next()).done).toBe(true);
      expect(getEventListeners(signal, 'abort').length).toBe(0);
    }
    await leases[Symbol.asyncDispose]();
    await backend.close();
    expect(clock.timerCount).toBe(0);
  });

  test('throws the error that ends it, and the reason of the signal', async () => {
    const stop = new AbortController();
    const processRef = new ProcessRef({ unref: true });
    const values = cancellableIterator({ signal: stop.signal, processRef }, async function* (ending): AsyncGenerator<
      number,
      never
    > {
      yield 1;
      yield 2;
      ending.throwIfAborted();
      throw new RangeError('of its own');
    });
    expect(await values.next()).toStrictEqual({ done: false, value: 1 });
    expect(await values.next()).toStrictEqual({ done: false, value: 2 });
    stop.abort(new Error('enough'));
    await expect(values.next()).rejects.toThrow(/^enough$/);
    const others = cancellableIterator({ signal: undefined, processRef }, async function* (): AsyncGenerator<
      number,
      never
    > {
      yield 1;
      throw new RangeError('of its own');
    });
    await others.next();
    await expect(others.next()).rejects.toThrow(RangeError);
  });
});
