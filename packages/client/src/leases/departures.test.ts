import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Claim, LeaseBackend } from '../backend/lease-backend.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { ProcessRef } from '../time/process-ref.ts';
import { Departures } from './departures.ts';

const { signal } = new AbortController();
const fixed = { holder: 'h', mode: 'exclusive', permits: 1, ttlMs: 60_000, data: '' } as const;

interface World {
  readonly clock: FakeClock;
  readonly departures: Departures;
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
    departures: new Departures({ backend: counting, clock, processRef: new ProcessRef({ unref: true }) }),
    enter: async (id) => (await backend.enter(claim(id), { onlyIfHolds: false, signal })).ticket,
    ids: async () => (await backend.list('job', signal)).map(({ id }) => id),
    calls: () => calls,
  };
}

describe('leaving a line in the background', () => {
  test('takes out what nobody heard of also when it comes to be only after the first attempt', async () => {
    const { clock, departures, enter, ids, calls } = world();
    departures.leaveLater({ name: 'job', id: 'late', ticket: 0n });
    await clock.advance(400);
    await enter('other');
    await enter('late');
    assert.deepEqual(await ids(), ['other', 'late']);
    await clock.advance(200);
    assert.deepEqual(await ids(), ['other']);
    const before = calls();
    await clock.advance(50_000);
    assert.equal(calls(), before);
  });

  test('gives up looking for one that never comes, and at once when it is to end', async () => {
    const { clock, departures, calls } = world();
    departures.leaveLater({ name: 'job', id: 'never', ticket: 0n });
    await clock.advance(50_000);
    assert.equal(calls(), 6);
    departures.leaveLater({ name: 'job', id: 'never again', ticket: 0n });
    await clock.advance(100);
    await departures.end();
    assert.equal(calls(), 8);
    assert.equal(clock.timerCount, 0);
  });

  test('asks once for one of which it is known that it was there', async () => {
    const { clock, departures, calls } = world();
    departures.leaveLater({ name: 'job', id: 'gone', ticket: 7n });
    await clock.advance(50_000);
    assert.equal(calls(), 1);
  });
});
