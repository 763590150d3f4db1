import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'vitest';
import { createLeaseManager } from '../lease-manager.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { ProcessRef } from '../time/process-ref.ts';
import { endable } from './endable.ts';

describe('what can be watched', () => {
  test('ends at once also while somebody waits for the next change, and leaves nothing behind', async () => {
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
        assert.equal((await iterator.next()).done, false);
        const pending = iterator.next();
        // No time passes until here.
        assert.deepEqual(await iterator.return!(), { done: true, value: undefined });
        assert.deepEqual(await pending, { done: true, value: undefined });
        assert.deepEqual(await iterator.next(), { done: true, value: undefined });
        assert.equal(getEventListeners(signal, 'abort').length, 0);
      }
      for await (const _ of leases.watch('job', options)) break;
      const unread = leases.watch('job', options)[Symbol.asyncIterator]();
      await unread.return!();
      assert.equal((await unread.next()).done, true);
      assert.equal(getEventListeners(signal, 'abort').length, 0);
    }
    await leases[Symbol.asyncDispose]();
    await backend.close();
    assert.equal(clock.timerCount, 0);
  });

  test('throws what ends it, and the reason of the signal', async () => {
    const stop = new AbortController();
    const processRef = new ProcessRef({ unref: true });
    const values = endable({ signal: stop.signal, processRef }, async function* (ending): AsyncGenerator<
      number,
      never
    > {
      yield 1;
      yield 2;
      ending.throwIfAborted();
      throw new RangeError('of its own');
    });
    assert.deepEqual(await values.next(), { done: false, value: 1 });
    assert.deepEqual(await values.next(), { done: false, value: 2 });
    stop.abort(new Error('enough'));
    await assert.rejects(values.next(), /^Error: enough$/);
    const others = endable({ signal: undefined, processRef }, async function* (): AsyncGenerator<number, never> {
      yield 1;
      throw new RangeError('of its own');
    });
    await others.next();
    await assert.rejects(others.next(), RangeError);
  });
});
