import { describe, expect, test } from 'vitest';
import type { Claim, LeaseBackend } from '../backend/lease-backend.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { ProcessRef } from '../time/process-ref.ts';
import { EntryRemovals } from './entry-removals.ts';

const { signal } = new AbortController();
const fixed = { holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 60_000, data: '' } as const;

interface World {
  readonly clock: FakeClock;
  readonly removals: EntryRemovals;
  readonly enter: (id: string) => Promise<bigint | undefined>;
  readonly ids: () => Promise<readonly string[]>;
  readonly calls: () => number;
}

function world(): World {
  const clock = new FakeClock();
  const backend = memoryBackend({ clock });
  let calls = 0;
  const leave: LeaseBackend['leave'] = async (entry, ending) => {
    calls++;
    return await backend.leave(entry, ending);
  };
  const counting = new Proxy(backend, {
    get: (target, key) => (key === 'leave' ? leave : (Reflect.get(target, key) as unknown)),
  });
  const claim = (id: string): Claim => ({ ...fixed, name: 'job', id });
  return {
    clock,
    removals: new EntryRemovals({ backend: counting, clock, processRef: new ProcessRef({ unref: true }) }),
    enter: async (id) => (await backend.enter(claim(id), { onlyIfHolds: false, signal })).sequence,
    ids: async () => (await backend.list('job', signal)).map(({ id }) => id),
    calls: () => calls,
  };
}

describe('removing entries in the background', () => {
  test('removes an entry whose answer was lost, even if it appears only after the first attempt', async () => {
    const { clock, removals, enter, ids, calls } = world();
    removals.removeLater({ name: 'job', id: 'late', sequence: 0n });
    await clock.advance(400);
    await enter('other');
    await enter('late');
    expect(await ids()).toEqual(['other', 'late']);
    await clock.advance(200);
    expect(await ids()).toEqual(['other']);
    const before = calls();
    await clock.advance(50_000);
    expect(calls()).toBe(before);
  });

  test('gives up on an entry that never appears, and at once when it is told to end', async () => {
    const { clock, removals, calls } = world();
    removals.removeLater({ name: 'job', id: 'never', sequence: 0n });
    await clock.advance(50_000);
    expect(calls()).toBe(6);
    removals.removeLater({ name: 'job', id: 'never again', sequence: 0n });
    await clock.advance(100);
    await removals.end();
    expect(calls()).toBe(8);
    expect(clock.timerCount).toBe(0);
  });

  test('asks once for an entry that is known to have existed', async () => {
    const { clock, removals, calls } = world();
    removals.removeLater({ name: 'job', id: 'gone', sequence: 7n });
    await clock.advance(50_000);
    expect(calls()).toBe(1);
  });
});
