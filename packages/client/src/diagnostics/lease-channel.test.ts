import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, test } from 'vitest';
import { BackendError } from '../errors/backend-error.ts';
import { createLeaseManager } from '../lease-manager.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import type { LeaseEvent, LeaseEventMessage } from './lease-channel.ts';

const events: readonly LeaseEvent[] = [
  'acquired',
  'waiting',
  'renewed',
  'renew-failed',
  'lost',
  'released',
  'release-failed',
  'listener-failed',
];

describe('diagnostics channels', () => {
  test('publish every event of a lease', async () => {
    const told: string[] = [];
    const listeners = events.map((event) => {
      const listener = (message: unknown): void => {
        const { name, holder, backend, fencingToken, error } = message as LeaseEventMessage;
        const words = error instanceof Error ? [error.name] : [];
        told.push([event, name, holder, backend, fencingToken ?? '-', ...words].join(' '));
      };
      subscribe(`tenure:lease:${event}`, listener);
      return { event, listener };
    });
    try {
      const clock = new FakeClock();
      const backend = memoryBackend({ clock });
      const one = createLeaseManager({ backend, clock, holder: 'one', ttlMs: 900 });
      const two = createLeaseManager({ backend, clock, holder: 'two', ttlMs: 900 });
      const remove = one.addListener({
        afterAcquire: () => {
          throw new RangeError('of a listener');
        },
      });
      const hold = await one.acquire('job');
      remove();
      const waiting = two.acquire('job');
      await clock.advance(300);
      await hold.release();
      await clock.advance(0);
      await waiting;
      await clock.stall(2_000);
      expect(told).toEqual([
        'acquired job one memory 1',
        'listener-failed job one memory 1 RangeError',
        'waiting job two memory -',
        'renewed job one memory 1',
        'released job one memory 1',
        'acquired job two memory 2',
        'lost job two memory 2 LeaseLostError',
      ]);
      const last = await one.acquire('last');
      await backend.close();
      await expect(last.renew()).rejects.toThrow(BackendError);
      await expect(last.release()).rejects.toThrow(BackendError);
      expect(told.slice(-2)).toEqual([
        'renew-failed last one memory 3 BackendError',
        'release-failed last one memory 3 BackendError',
      ]);
    } finally {
      for (const { event, listener } of listeners) unsubscribe(`tenure:lease:${event}`, listener);
    }
  });
});
