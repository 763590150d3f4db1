import { AcquireTimeoutError, BackendError, LeaseHeldError, LeaseLostError } from 'tenure';
import { describe, expect, test } from 'vitest';
import { answerLost, deferred, hanging, leaseFixture, unreachable } from './scripted-backend.ts';

function reasonOf(signal: AbortSignal): string | undefined {
  return signal.reason instanceof LeaseLostError ? signal.reason.reason : undefined;
}

const never = new AbortController().signal;

/** Known issues of other libraries, by the numbers of their threads. Each could occur here too. */
describe('node-redlock', () => {
  test('#309: after a loss no caller waits for a release that cannot succeed', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    for (const call of ['renew', 'leave'] as const) backend.hooks[call] = hanging;
    await clock.advance(900);
    expect(reasonOf(hold.signal)).toBe('unreachable');
    // No time passes from here on.
    expect(await hold.release()).toBe(false);
    expect(await hold.release()).toBe(false);
  });

  test('#185, #288: never acquired, lost and held by another are distinct errors', async () => {
    const { clock, open, store } = leaseFixture();
    const { leases } = open('one');
    const hold = await leases.acquire('job');
    await expect(open('two').leases.acquire('job', { wait: 'none' })).rejects.toThrow(LeaseHeldError);
    const third = open('three').leases.acquire('job');
    await clock.advance(0);
    await store.leave(hold.entry, never);
    await clock.advance(0);
    await third;
    await clock.advance(400);
    expect(reasonOf(hold.signal)).toBe('gone');
    expect((await hold.lost)?.reason).toBe('stolen');
  });

  test('#369: an acquired lease has not expired already', async () => {
    const { clock, open, queue } = leaseFixture();
    const { leases, backend } = open('one');
    backend.hooks.enter = async (pass) => {
      delete backend.hooks.enter;
      const entered = await pass();
      // The process is paused before it sees the answer.
      void clock.stall(950);
      return entered;
    };
    backend.hooks.renew = async (pass) => {
      delete backend.hooks.renew;
      void clock.stall(950);
      return await pass();
    };
    const acquiring = leases.acquire('job');
    await clock.advance(5_000);
    const hold = await acquiring;
    expect(hold.isHeld()).toBe(true);
    expect((await queue('job')).at(-1)?.sequence).toBe(hold.fencingToken);
  });

  test('#369: no caller is blocked by an entry of its own whose answer was lost', async () => {
    const { clock, open, queue } = leaseFixture();
    const { leases, backend } = open('one');
    backend.hooks.enter = answerLost;
    await expect(leases.acquire('job', { ttlMs: 60_000 })).rejects.toThrow(BackendError);
    delete backend.hooks.enter;
    expect(await queue('job')).toEqual([]);
    // Also when its entry could not be removed at once.
    backend.hooks.enter = answerLost;
    backend.hooks.leave = unreachable;
    await expect(leases.acquire('job', { ttlMs: 60_000 })).rejects.toThrow(BackendError);
    delete backend.hooks.enter;
    expect((await queue('job')).length).toBe(1);
    delete backend.hooks.leave;
    await clock.advance(1_000);
    expect((await leases.acquire('job')).isHeld()).toBe(true);
  });

  test('#369: an error of the work is not hidden by a release that fails', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    backend.hooks.leave = unreachable;
    const working = leases.withLease('job', {}, () => {
      throw new RangeError('of the work');
    });
    await expect(working).rejects.toThrow(new RangeError('of the work'));
    await clock.advance(1_000);
    expect(await leases.withLease('other', {}, () => 'done')).toBe('done');
  });

  test('#369: no timer is left when everything has ended', async () => {
    const { clock, open, store } = leaseFixture();
    const { leases, backend } = open('one');
    const { leases: other, backend: elsewhere } = open('two');
    await leases.acquire('job');
    const waiting = other.acquire('job', { wait: 2_000 }).catch((error: unknown) => error);
    await clock.advance(2_000);
    expect(await waiting).toBeInstanceOf(AcquireTimeoutError);
    expect(elsewhere.openWatches).toBe(0);
    backend.hooks.leave = unreachable;
    await Promise.all([leases[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]);
    await store.close();
    expect(clock.timerCount).toBe(0);
  });

  test('#86, #289: waiting can be cancelled, also while nothing answers', async () => {
    const { clock, open, queue } = leaseFixture();
    const { leases, backend } = open('one');
    const controller = new AbortController();
    backend.hooks.enter = async (pass) => {
      await pass();
      return await new Promise(() => {});
    };
    const acquiring = leases.acquire('job', { signal: controller.signal }).catch((error: unknown) => error);
    await clock.advance(10);
    controller.abort(new Error('enough'));
    expect(await acquiring).toMatchObject({ message: 'enough' });
    expect(await queue('job')).toEqual([]);
  });

  test('#169: withLease ends with its work, even if the release hangs', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    backend.hooks.leave = hanging;
    const working = leases.withLease('job', {}, () => 'done');
    await clock.advance(5_000);
    expect(await working).toBe('done');
  });
});

describe('redis-semaphore', () => {
  test('#9, #24: a paused holder notices its loss, and does not continue beside the next one', async () => {
    const { clock, open } = leaseFixture();
    const hold = await open('one').leases.acquire('job');
    const losses: string[] = [];
    hold.signal.addEventListener('abort', () => losses.push(String(reasonOf(hold.signal))));
    const { leases } = open('two');
    const stalled = clock.stall(30_000);
    const next = await leases.acquire('job');
    await stalled;
    expect(losses).toEqual(['stalled']);
    expect(next.isHeld()).toBe(true);
  });

  test('#175: a renewal that is answered after the deadline does not revive the hold', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    const answer = deferred<readonly boolean[]>();
    backend.hooks.renew = () => answer.promise;
    await clock.advance(400);
    const stalled = clock.stall(600);
    answer.resolve([true]);
    // The answer is seen before any timer, and it was sent less than a lifetime ago.
    await Promise.resolve();
    await stalled;
    expect(hold.signal.aborted).toBe(true);
    expect(hold.isHeld()).toBe(false);
  });

  test('#205, #206: a renewal under way during the release is no loss', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    let losses = 0;
    leases.addListener({ afterLoss: () => losses++ });
    const hold = await leases.acquire('job');
    const answer = deferred<readonly boolean[]>();
    backend.hooks.renew = () => answer.promise;
    await clock.advance(400);
    expect(await hold.release()).toBe(true);
    answer.resolve([false]);
    await clock.advance(5_000);
    expect(losses).toBe(0);
    expect(hold.signal.aborted).toBe(false);
    expect(hold.isHeld()).toBe(false);
  });

  test('a release that takes longer than the lease lasts is no loss either', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    backend.hooks.leave = hanging;
    const releasing = hold.release().catch((error: unknown) => error);
    expect(hold.isHeld()).toBe(false);
    await clock.advance(5_000);
    expect(await releasing).toBeInstanceOf(BackendError);
    expect(hold.signal.aborted).toBe(false);
  });
});

describe('microsoft/etcd3', () => {
  test('#155, #57: the loss is told before the lease has run out, not two lifetimes later', async () => {
    const { clock, open, queue } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job', { ttlMs: 10_000 });
    backend.hooks.renew = unreachable;
    let wasThere = 0;
    hold.signal.addEventListener('abort', () => void queue('job').then((entries) => (wasThere = entries.length)));
    await clock.advance(9_999);
    expect(hold.signal.aborted).toBe(true);
    expect(wasThere).toBe(1);
  });

  test('#110, dynamolock #446, k8s #44887: a connection that hangs half-open is noticed in time', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    for (const call of ['renew', 'list', 'leave', 'enter'] as const) backend.hooks[call] = hanging;
    await clock.advance(999);
    expect(reasonOf(hold.signal)).toBe('unreachable');
  });

  test('#13: an entry that was taken away is noticed at the next renewal', async () => {
    const { clock, open, store } = leaseFixture();
    const hold = await open('one').leases.acquire('job');
    await store.leave(hold.entry, never);
    await clock.advance(334);
    expect(hold.isHeld()).toBe(false);
    expect(reasonOf(hold.signal)).toBe('gone');
    expect((await hold.lost)?.reason).toBe('revoked');
    expect(() => hold.throwIfLost()).toThrow(expect.objectContaining({ name: 'LeaseLostError', reason: 'revoked' }));
  });

  test('#13: and the signal and listeners do not wait for the cause', async () => {
    const { clock, open, store } = leaseFixture();
    const { leases, backend } = open('one');
    const heard: unknown[] = [];
    leases.addListener({ afterLoss: (hold, error) => heard.push(error.reason, error === hold.signal.reason) });
    const hold = await leases.acquire('job');
    let cause: unknown = 'not known';
    void hold.lost.then((loss) => (cause = loss?.reason));
    backend.hooks.list = hanging;
    await store.leave(hold.entry, never);
    await open('two').leases.acquire('job', { wait: 'none' });
    await clock.advance(334);
    expect([hold.isHeld(), hold.signal.aborted]).toEqual([false, true]);
    expect(reasonOf(hold.signal)).toBe('gone');
    expect(heard).toEqual(['gone', true]);
    expect(() => hold.throwIfLost()).toThrow(LeaseLostError);
    expect(cause).toBe('not known');
    await clock.advance(250);
    expect(cause).toBe('gone');
    expect(heard).toEqual(['gone', true]);
  });

  test('#13: a released hold reports no loss, and `lost` resolves', async () => {
    const { open } = leaseFixture();
    const hold = await open('one').leases.acquire('job');
    await hold.release();
    expect(await hold.lost).toBe(undefined);
    expect(hold.signal.aborted).toBe(false);
  });

  test('#78, #31: a waiter survives an outage and acquires after it', async () => {
    const { clock, open, queue } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const { leases, backend } = open('two');
    const acquiring = leases.acquire('job');
    await clock.advance(100);
    backend.deafToHints = true;
    for (const call of ['renew', 'list', 'leave', 'enter'] as const) backend.hooks[call] = unreachable;
    await clock.advance(5_000);
    expect((await queue('job')).length).toBe(1);
    for (const call of ['renew', 'list', 'leave', 'enter'] as const) delete backend.hooks[call];
    await clock.advance(3_000);
    expect((await queue('job')).length).toBe(2);
    await first.release();
    await clock.advance(backend.pollIntervalMs);
    expect((await acquiring).isHeld()).toBe(true);
  });
});

describe('others', () => {
  test('tristanls/dynamodb-lock-client #1: nothing is renewed after its release', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    const lazy = await leases.acquire('lazy');
    await clock.advance(1_000);
    expect(await hold.release()).toBe(true);
    expect(await lazy.release({ lazy: true })).toBe(false);
    const renewals = backend.count('renew');
    await clock.advance(10_000);
    expect(backend.count('renew')).toBe(renewals);
    expect(await leases.inspect('lazy')).toBe(null);
  });

  test('dynamodb-lock-client PR #116: one failed release does not prevent the others', async () => {
    const { clock, open, queue } = leaseFixture();
    const { leases, backend } = open('one');
    for (const name of ['a', 'b', 'c']) await leases.acquire(name, { ttlMs: 60_000 });
    let attempts = 0;
    backend.hooks.leave = (pass) => (++attempts === 1 ? new Promise(() => {}) : pass());
    const disposing = leases[Symbol.asyncDispose]();
    await clock.advance(5_000);
    await disposing;
    const left = await Promise.all(['a', 'b', 'c'].map(queue));
    expect(left.flat().length).toBe(0);
  });

  test('ShedLock #6: it is held for a minimum time, also when it is released sooner', async () => {
    const { clock, open } = leaseFixture();
    const { leases } = open('one');
    const hold = await leases.acquire('job', { holdAtLeastMs: 5_000 });
    await clock.advance(2_000);
    expect(await hold.release()).toBe(true);
    expect(hold.isHeld()).toBe(false);
    const waiting = open('two').leases.acquire('job');
    let isGranted = false;
    void waiting.then(() => (isGranted = true));
    await clock.advance(2_990);
    expect(isGranted).toBe(false);
    await clock.advance(20);
    expect(isGranted).toBe(true);
    // Released late enough it is free at once.
    const late = await leases.acquire('late', { holdAtLeastMs: 500 });
    await clock.advance(500);
    await late.release();
    expect(await leases.tryAcquire('late')).toBeTruthy();
  });

  test('ShedLock #6: a wall clock that is set forward does not shorten the minimum time', async () => {
    const { clock, open } = leaseFixture();
    const hold = await open('one').leases.acquire('job', { ttlMs: 30_000, holdAtLeastMs: 5_000 });
    clock.jumpWall(10_000);
    expect(await hold.release()).toBe(true);
    await clock.advance(4_990);
    const { leases } = open('two');
    expect(await leases.tryAcquire('job')).toBe(null);
    await clock.advance(20);
    expect(await leases.tryAcquire('job')).toBeTruthy();
  });

  test('ShedLock #6: a renewal in flight does not extend the minimum time', async () => {
    const { clock, open, sleep, queue } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job', { holdAtLeastMs: 700 });
    backend.hooks.renew = async (pass) => {
      delete backend.hooks.renew;
      await sleep(150);
      return await pass();
    };
    await clock.advance(400);
    const releasing = hold.release();
    await clock.advance(310);
    expect(await releasing).toBe(true);
    // The renewal came to the store at 484 ms, and would have kept it until 1484.
    expect((await queue('job')).length).toBe(0);
  });
});
