// Reason for length: one file for all the rules, so that a missing one is noticed at once.
import { AcquireTimeoutError, BackendError, ClosedError, LeaseLostError, UsageError } from 'tenure';
import { describe, expect, test } from 'vitest';
import { answerLost, deferred, hanging, leaseFixture, unreachable, withOtherWall } from './scripted-backend.ts';

function reasonOf(signal: AbortSignal): string | undefined {
  return signal.reason instanceof LeaseLostError ? signal.reason.reason : undefined;
}

describe('rule 1: a hold counts from when it was sent, less a margin', () => {
  test('of the entry, however long the answer took', async () => {
    const { clock, open, sleep } = leaseFixture();
    const { leases, backend } = open('one');
    backend.hooks.enter = async (pass) => {
      const entered = await pass();
      await sleep(400);
      return entered;
    };
    const acquiring = leases.acquire('job', { autoRenew: false });
    await clock.advance(400);
    const hold = await acquiring;
    await clock.advance(499);
    expect(hold.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(hold.signal.aborted).toBe(true);
    expect(reasonOf(hold.signal)).toBe('expired');
  });

  test('of a renewal, and the store still has the entry when the signal aborts', async () => {
    const { clock, open, queue, sleep } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    backend.hooks.renew = async (pass) => {
      backend.hooks.renew = hanging;
      const renewed = await pass();
      await sleep(160);
      return renewed;
    };
    // It is sent after a third of a second.
    await clock.advance(334 + 890);
    expect(hold.isHeld()).toBe(true);
    await clock.advance(10);
    expect(hold.signal.aborted).toBe(true);
    expect((await queue('job')).length).toBe(1);
    await clock.advance(100);
    expect((await queue('job')).length).toBe(0);
  });
});

describe('rule 2: both clocks judge, at every use', () => {
  test('the wall clock that jumps ahead, as after a suspend', async () => {
    const { clock, open } = leaseFixture();
    const hold = await open('one').leases.acquire('job');
    clock.jumpWall(1_000);
    expect(hold.isHeld()).toBe(false);
    expect(reasonOf(hold.signal)).toBe('stalled');
    expect(() => hold.throwIfLost()).toThrow(LeaseLostError);
  });

  test('the wall clock that is set back has no effect, then or later', async () => {
    const { clock, open } = leaseFixture();
    const hold = await open('one').leases.acquire('job');
    clock.jumpWall(-3_600_000);
    await clock.advance(5_000);
    expect(hold.isHeld()).toBe(true);
    clock.jumpWall(1_000);
    expect(hold.isHeld()).toBe(false);
  });

  test('an event loop that stood still, before any timer could run', async () => {
    const { clock, open } = leaseFixture();
    const hold = await open('one').leases.acquire('job');
    const stalled = clock.stall(1_500);
    expect(hold.isHeld()).toBe(false);
    expect(reasonOf(hold.signal)).toBe('stalled');
    await stalled;
  });

  test('the late timer aborts the signal of work that never checks', async () => {
    const { clock, open } = leaseFixture();
    const hold = await open('one').leases.acquire('job');
    await clock.stall(1_500);
    expect(reasonOf(hold.signal)).toBe('stalled');
  });
});

describe('rule 3: each renewal has its own deadline, and there are many', () => {
  test('a hanging renewal is abandoned in time for others', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    let attempts = 0;
    backend.hooks.renew = (pass) => (++attempts < 3 ? new Promise(() => {}) : pass());
    await clock.advance(10_000);
    expect(hold.isHeld()).toBe(true);
    expect(attempts).toBeGreaterThan(10);
  });

  test('when all fail the hold is lost in time, with its reason', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    backend.hooks.renew = unreachable;
    await clock.advance(890);
    expect(hold.isHeld()).toBe(true);
    await clock.advance(10);
    expect(reasonOf(hold.signal)).toBe('unreachable');
    expect((hold.signal.reason as LeaseLostError).cause).toBeInstanceOf(BackendError);
    expect(backend.count('renew')).toBeGreaterThanOrEqual(5);
  });
});

describe('rule 4: tokens never go back', () => {
  test('not when the queue has been empty, for any caller', async () => {
    const { clock, open } = leaseFixture();
    let last = 0n;
    for (const holder of ['one', 'two', 'one', 'three']) {
      const hold = await open(holder).leases.acquire('job');
      expect(hold.fencingToken).toBeGreaterThan(last);
      last = hold.fencingToken;
      if (holder === 'two') await clock.stall(2_000);
      else await hold.release();
    }
  });
});

describe('rule 5: after an outage nothing is held before the store has confirmed it', () => {
  test('a waiter that becomes the first must be renewed before it holds', async () => {
    const { clock, open } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const { leases, backend } = open('two');
    let isGranted = false;
    const acquiring = leases.acquire('job').then((hold) => {
      isGranted = true;
      return hold;
    });
    await clock.advance(0);
    // Its entry is still live in the store, but it does not know.
    backend.hooks.renew = answerLost;
    await clock.advance(3_000);
    await first.release();
    await clock.advance(2_000);
    expect(isGranted).toBe(false);
    delete backend.hooks.renew;
    await clock.advance(2_500);
    expect((await acquiring).isHeld()).toBe(true);
  });

  test('a waiter whose entry was removed does not take an empty queue for its turn', async () => {
    const { clock, open, store, queue } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const second = open('two').leases.acquire('job');
    await clock.advance(0);
    for (const entry of (await queue('job')).toReversed()) await store.leave(entry, new AbortController().signal);
    await clock.advance(100);
    const hold = await second;
    expect(hold.fencingToken).toBeGreaterThan(first.fencingToken + 1n);
    expect((await queue('job')).map(({ sequence }) => sequence)).toStrictEqual([hold.fencingToken]);
  });

  test('a waiter whose entry is gone moves to the end of the queue', async () => {
    const { clock, open, store, queue } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const second = open('two').leases.acquire('job');
    await clock.advance(0);
    const third = open('three').leases.acquire('job');
    await clock.advance(0);
    await store.leave((await queue('job'))[1]!, new AbortController().signal);
    await clock.advance(500);
    expect((await queue('job')).map(({ holder }) => holder)).toEqual(['one', 'three', 'two']);
    await first.release();
    await clock.advance(0);
    await (await third).release();
    await clock.advance(0);
    expect((await second).isHeld()).toBe(true);
  });
});

describe('rule 6: a waiter has an entry in the queue, and a cancelled one leaves it', () => {
  test('at once when it is cancelled', async () => {
    const { clock, open, queue } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const controller = new AbortController();
    const acquiring = open('two').leases.acquire('job', { signal: controller.signal });
    await clock.advance(100);
    expect((await queue('job')).length).toBe(2);
    controller.abort(new Error('no more'));
    await expect(acquiring).rejects.toThrow(/^no more$/);
    expect((await queue('job')).map(({ sequence }) => sequence)).toStrictEqual([first.fencingToken]);
  });

  test('at the moment of its grant', async () => {
    const { clock, open, queue } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const controller = new AbortController();
    const { leases, backend } = open('two');
    const acquiring = leases.acquire('job', { signal: controller.signal });
    const refused = acquiring.catch((error: unknown) => error);
    await clock.advance(100);
    const third = open('three').leases.acquire('job');
    await clock.advance(100);
    backend.hooks.list = async (pass) => {
      const entries = await pass();
      controller.abort(new Error('no more'));
      return entries;
    };
    await first.release();
    await clock.advance(0);
    expect(await refused).toMatchObject({ message: 'no more' });
    expect((await third).isHeld()).toBe(true);
    expect((await queue('job')).length).toBe(1);
  });

  test('when its time is up, with an error that has the waited time', async () => {
    const { clock, open, queue } = leaseFixture();
    await open('one').leases.acquire('job');
    const { leases } = open('two');
    const acquiring = leases.acquire('job', { wait: 2_500 });
    const timedOut = acquiring.catch((error: unknown) => error);
    await clock.advance(2_500);
    const error = await timedOut;
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(error).toMatchObject({ waitedMs: 2_500, leaseName: 'job' });
    expect((await queue('job')).length).toBe(1);
    expect(await leases.tryAcquire('job', { wait: 'none' })).toBe(null);
  });

  test('polls when every hint is lost', async () => {
    const { clock, open } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const { leases, backend } = open('two');
    backend.deafToHints = true;
    const acquiring = leases.acquire('job');
    await clock.advance(100);
    await first.release();
    await clock.advance(backend.pollIntervalMs);
    expect((await acquiring).isHeld()).toBe(true);
  });

  test('a hint during a read is not lost', async () => {
    const { clock, open, store } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const { leases, backend } = open('two');
    const acquiring = leases.acquire('job');
    const answer = deferred<void>();
    backend.hooks.list = async (pass) => {
      delete backend.hooks.list;
      const entries = await pass();
      await answer.promise;
      return entries;
    };
    await clock.advance(0);
    await store.leave(first.entry, new AbortController().signal);
    await clock.advance(10);
    answer.resolve();
    await clock.advance(0);
    expect((await acquiring).isHeld()).toBe(true);
  });
});

describe('rule 7: a release ends its own entry only', () => {
  test('that of the next holder stays', async () => {
    const { clock, open } = leaseFixture();
    const late = await open('one').leases.acquire('job');
    const stalled = clock.stall(2_000);
    const next = await open('two').leases.acquire('job');
    expect(await late.release()).toBe(false);
    await stalled;
    await clock.advance(5_000);
    expect(next.isHeld()).toBe(true);
  });

  test('a disposed manager tells the work to stop, waits for that, and then releases', async () => {
    const { clock, open, queue, sleep } = leaseFixture();
    const { leases } = open('one');
    const story: string[] = [];
    leases.addListener({ beforeRelease: (hold) => story.push(`release ${hold.isHeld()}`) });
    const working = leases.withLease('job', {}, async (hold) => {
      await new Promise<void>((resolve) => hold.signal.addEventListener('abort', () => resolve()));
      story.push(`told by ${(hold.signal.reason as Error).name}`);
      await sleep(300);
      story.push(`stopped, ${(await queue('job')).length} in queue`);
      return 'done';
    });
    await clock.advance(0);
    const disposing = leases[Symbol.asyncDispose]().then(() => story.push('disposed'));
    await clock.advance(300);
    await disposing;
    expect(await working).toBe('done');
    expect(story).toEqual(['told by ClosedError', 'stopped, 1 in queue', 'release true', 'disposed']);
    expect((await queue('job')).length).toBe(0);
    await expect(leases.acquire('job')).rejects.toThrow(ClosedError);
    await expect(leases.inspect('job')).rejects.toThrow(ClosedError);
    expect(() => leases.requestLease('job')).toThrow(ClosedError);
    await leases[Symbol.asyncDispose]();
  });
});

describe('rule 8: each failure has an error of its own', () => {
  test('held by another, timed out, cancelled, lost, no backend, closed, misuse', async () => {
    const { clock, open } = leaseFixture();
    const hold = await open('one').leases.acquire('job');
    const { leases, backend } = open('two');
    await expect(leases.acquire('job', { wait: 'none' })).rejects.toMatchObject({
      name: 'LeaseHeldError',
      heldBy: 'one',
    });
    const timedOut = leases.acquire('job', { wait: 'ttl' }).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await timedOut).toBeInstanceOf(AcquireTimeoutError);
    await expect(leases.acquire('job', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
    await clock.stall(2_000);
    expect(() => hold.throwIfLost()).toThrow(LeaseLostError);
    backend.hooks.enter = unreachable;
    await expect(leases.acquire('job')).rejects.toThrow(BackendError);
    await expect(leases.tryAcquire('job')).rejects.toThrow(BackendError);
    backend.hooks.enter = async () => {
      throw new TypeError('a bug of the backend');
    };
    await expect(leases.acquire('job')).rejects.toMatchObject({ name: 'BackendError', cause: expect.any(TypeError) });
    delete backend.hooks.enter;
    const released = await leases.acquire('job');
    await released.release();
    expect(() => released.throwIfLost()).toThrow(ClosedError);
    await expect(released.renew()).rejects.toThrow(ClosedError);
  });

  test('misuse is reported before any call to the backend', async () => {
    const { open } = leaseFixture();
    const { leases, backend } = open('one');
    const bad = [
      () => leases.acquire(''),
      () => leases.acquire('x'.repeat(10_000)),
      () => leases.acquire('a\0b'),
      () => leases.acquire('\ud800'),
      () => leases.acquire(7 as unknown as string),
      () => leases.acquire('job', { ttlMs: 0 }),
      () => leases.acquire('job', { ttlMs: Number.NaN }),
      () => leases.acquire('job', { ttlMs: 1.5 }),
      () => leases.acquire('job', { ttlMs: Infinity }),
      () => leases.acquire('job', { wait: -1 }),
      () => leases.acquire('job', { wait: Number.NaN }),
      () => leases.acquire('job', { wait: 'sometimes' as 'none' }),
      () => leases.acquire('job', { holdAtLeastMs: -1 }),
      () => leases.acquire('job', { data: 'x'.repeat(100_000) }),
      () => leases.tryAcquire('job', { ttlMs: -5 }),
      () => leases.withLease('', {}, () => {}),
      () => leases.inspect(''),
      () => leases.requestLease('job').acquire({ ttlMs: 0 }),
    ];
    for (const misuse of bad) await expect(async () => await misuse(), misuse.toString()).rejects.toThrow(UsageError);
    expect(() => leases.requestLease('')).toThrow(UsageError);
    expect(() => leases.election('')).toThrow(UsageError);
    expect(() => leases.readWriteLock('')).toThrow(UsageError);
    expect(() => open('one', { ttlMs: 0 })).toThrow(UsageError);
    expect(() => open('')).toThrow(UsageError);
    expect(backend.calls).toEqual([]);
  });
});

describe('rule 9: no two wall clocks are compared', () => {
  test('machines whose clocks are years apart share leases like others', async () => {
    const { clock, open, queue } = leaseFixture();
    const year = 365 * 24 * 3_600_000;
    const one = open('one', { clock: withOtherWall(clock, 20 * year) }).leases;
    const two = open('two', { clock: withOtherWall(clock, -20 * year) }).leases;
    const hold = await one.acquire('job');
    const waiting = two.acquire('job');
    await clock.advance(10_000);
    expect(hold.isHeld()).toBe(true);
    await hold.release();
    await clock.advance(0);
    const next = await waiting;
    await clock.advance(10_000);
    expect(next.isHeld()).toBe(true);
    expect((await queue('job')).length).toBe(1);
  });
});

describe('rule 10: a watch begins with the current state and never ends silently', () => {
  test('it survives an outage, and ends by an error', async () => {
    const { clock, open } = leaseFixture();
    const { leases: other } = open('other');
    const { leases, backend } = open('one');
    await other.acquire('job', { data: 'here' });
    const seen: (string | undefined)[] = [];
    const watching = (async () => {
      for await (const info of leases.watch('job')) seen.push(info?.data);
    })();
    const ended = watching.catch((error: unknown) => error);
    await clock.advance(0);
    expect(seen).toEqual(['here']);
    backend.hooks.list = hanging;
    backend.deafToHints = true;
    await other[Symbol.asyncDispose]();
    await clock.advance(20_000);
    expect(seen).toEqual(['here']);
    delete backend.hooks.list;
    await clock.advance(15_000);
    expect(seen).toStrictEqual(['here', undefined]);
    await leases[Symbol.asyncDispose]();
    expect(await ended).toBeInstanceOf(ClosedError);
  });

  test('a permanent error is thrown', async () => {
    const { open } = leaseFixture();
    const { leases, backend } = open('one');
    backend.hooks.list = async () => {
      throw new BackendError('scripted', 'not-migrated', 'no such table');
    };
    const read = async (): Promise<void> => {
      for await (const _ of leases.watch('job')) continue;
    };
    await expect(read()).rejects.toThrow(BackendError);
  });
});
