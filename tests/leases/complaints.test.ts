import assert from 'node:assert/strict';
import { AcquireTimeoutError, BackendError, LeaseHeldError, LeaseLostError } from 'tenure';
import { describe, test } from 'vitest';
import { answerLost, deferred, hanging, leaseWorld, unreachable } from './scripted-backend.ts';

function reasonOf(signal: AbortSignal): string | undefined {
  return signal.reason instanceof LeaseLostError ? signal.reason.reason : undefined;
}

const never = new AbortController().signal;

/** What users of other libraries had to bear, by the number of what they wrote. A manager could repeat each of it. */
describe('node-redlock', () => {
  test('#309: after a loss nobody waits for a release that can not succeed', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    for (const call of ['renew', 'leave'] as const) way.hooks[call] = hanging;
    await clock.advance(900);
    assert.equal(reasonOf(hold.signal), 'unreachable');
    // No time passes from here on.
    assert.equal(await hold.release(), false);
    assert.equal(await hold.release(), false);
  });

  test('#185, #288: never had it, lost it and held by another are told apart', async () => {
    const { clock, open, store } = leaseWorld();
    const { leases } = open('one');
    const hold = await leases.acquire('job');
    await assert.rejects(open('two').leases.acquire('job', { wait: 'none' }), LeaseHeldError);
    const third = open('three').leases.acquire('job');
    await clock.advance(0);
    await store.leave(hold.entry, never);
    await clock.advance(0);
    await third;
    await clock.advance(400);
    assert.equal(reasonOf(hold.signal), 'gone');
    assert.equal((await hold.lost)?.reason, 'stolen');
  });

  test('#369: what is acquired has not expired already', async () => {
    const { clock, open, line } = leaseWorld();
    const { leases, way } = open('one');
    way.hooks.enter = async (pass) => {
      delete way.hooks.enter;
      const entered = await pass();
      // The process stands still before it sees the answer.
      void clock.stall(950);
      return entered;
    };
    way.hooks.renew = async (pass) => {
      delete way.hooks.renew;
      void clock.stall(950);
      return await pass();
    };
    const acquiring = leases.acquire('job');
    await clock.advance(5_000);
    const hold = await acquiring;
    assert.equal(hold.isHeld(), true);
    assert.equal((await line('job')).at(-1)?.ticket, hold.fencingToken);
  });

  test('#369: nobody is kept out by an entry of his own of which he never heard', async () => {
    const { clock, open, line } = leaseWorld();
    const { leases, way } = open('one');
    way.hooks.enter = answerLost;
    await assert.rejects(leases.acquire('job', { ttlMs: 60_000 }), BackendError);
    delete way.hooks.enter;
    assert.deepEqual(await line('job'), []);
    // Also when it could not be taken back at once.
    way.hooks.enter = answerLost;
    way.hooks.leave = unreachable;
    await assert.rejects(leases.acquire('job', { ttlMs: 60_000 }), BackendError);
    delete way.hooks.enter;
    assert.equal((await line('job')).length, 1);
    delete way.hooks.leave;
    await clock.advance(1_000);
    assert.equal((await leases.acquire('job')).isHeld(), true);
  });

  test('#369: an error of the work is not hidden by a release that fails', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    way.hooks.leave = unreachable;
    const working = leases.withLease('job', {}, () => {
      throw new RangeError('of the work');
    });
    await assert.rejects(working, /^RangeError: of the work$/);
    await clock.advance(1_000);
    assert.equal(await leases.withLease('other', {}, () => 'done'), 'done');
  });

  test('#369: no timer is left when everything has ended', async () => {
    const { clock, open, store } = leaseWorld();
    const { leases, way } = open('one');
    const { leases: other, way: elsewhere } = open('two');
    await leases.acquire('job');
    const waiting = assert.rejects(other.acquire('job', { wait: 2_000 }), AcquireTimeoutError);
    await clock.advance(2_000);
    await waiting;
    assert.equal(elsewhere.openWatches, 0);
    way.hooks.leave = unreachable;
    await Promise.all([leases[Symbol.asyncDispose](), other[Symbol.asyncDispose]()]);
    await store.close();
    assert.equal(clock.timerCount, 0);
  });

  test('#86, #289: waiting can be cancelled, also while nothing answers', async () => {
    const { clock, open, line } = leaseWorld();
    const { leases, way } = open('one');
    const controller = new AbortController();
    way.hooks.enter = async (pass) => {
      await pass();
      return await new Promise(() => {});
    };
    const acquiring = assert.rejects(leases.acquire('job', { signal: controller.signal }), /^Error: enough$/);
    await clock.advance(10);
    controller.abort(new Error('enough'));
    await acquiring;
    assert.deepEqual(await line('job'), []);
  });

  test('#169: the end of the work is the end, though the release hangs', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    way.hooks.leave = hanging;
    const working = leases.withLease('job', {}, () => 'done');
    await clock.advance(5_000);
    assert.equal(await working, 'done');
  });
});

describe('redis-semaphore', () => {
  test('#9, #24: who stood still is told, and does not work on beside the next one', async () => {
    const { clock, open } = leaseWorld();
    const hold = await open('one').leases.acquire('job');
    const losses: string[] = [];
    hold.signal.addEventListener('abort', () => losses.push(String(reasonOf(hold.signal))));
    const { leases } = open('two');
    const stalled = clock.stall(30_000);
    const next = await leases.acquire('job');
    await stalled;
    assert.deepEqual(losses, ['stalled']);
    assert.equal(next.isHeld(), true);
  });

  test('#175: a renewal that is answered after the deadline raises nobody from the dead', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    const answer = deferred<readonly boolean[]>();
    way.hooks.renew = () => answer.promise;
    await clock.advance(400);
    const stalled = clock.stall(600);
    answer.resolve([true]);
    // The answer is seen before any timer, and it was sent less than a lifetime ago.
    await Promise.resolve();
    await stalled;
    assert.equal(hold.signal.aborted, true);
    assert.equal(hold.isHeld(), false);
  });

  test('#205, #206: a renewal under way during the release is no loss', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    let losses = 0;
    leases.addListener({ afterLoss: () => losses++ });
    const hold = await leases.acquire('job');
    const answer = deferred<readonly boolean[]>();
    way.hooks.renew = () => answer.promise;
    await clock.advance(400);
    assert.equal(await hold.release(), true);
    answer.resolve([false]);
    await clock.advance(5_000);
    assert.equal(losses, 0);
    assert.equal(hold.signal.aborted, false);
    assert.equal(hold.isHeld(), false);
  });

  test('a release that takes longer than the lease lasts is no loss either', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    way.hooks.leave = hanging;
    const releasing = assert.rejects(hold.release(), BackendError);
    assert.equal(hold.isHeld(), false);
    await clock.advance(5_000);
    await releasing;
    assert.equal(hold.signal.aborted, false);
  });
});

describe('microsoft/etcd3', () => {
  test('#155, #57: the loss is told before the lease has run out, not two lifetimes later', async () => {
    const { clock, open, line } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job', { ttlMs: 10_000 });
    way.hooks.renew = unreachable;
    let wasThere = 0;
    hold.signal.addEventListener('abort', () => void line('job').then((entries) => (wasThere = entries.length)));
    await clock.advance(9_999);
    assert.equal(hold.signal.aborted, true);
    assert.equal(wasThere, 1);
  });

  test('#110, dynamolock #446, k8s #44887: a connection that hangs half-open is noticed in time', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    for (const call of ['renew', 'list', 'leave', 'enter'] as const) way.hooks[call] = hanging;
    await clock.advance(999);
    assert.equal(reasonOf(hold.signal), 'unreachable');
  });

  test('#13: an entry that was taken away is noticed at the next renewal', async () => {
    const { clock, open, store } = leaseWorld();
    const hold = await open('one').leases.acquire('job');
    await store.leave(hold.entry, never);
    await clock.advance(334);
    assert.equal(hold.isHeld(), false);
    assert.equal(reasonOf(hold.signal), 'gone');
    assert.equal((await hold.lost)?.reason, 'revoked');
    assert.throws(() => hold.throwIfLost(), { name: 'LeaseLostError', reason: 'revoked' });
  });

  test('#13: and the signal and listeners wait for nobody who could say who took it', async () => {
    const { clock, open, store } = leaseWorld();
    const { leases, way } = open('one');
    const heard: unknown[] = [];
    leases.addListener({ afterLoss: (hold, error) => heard.push(error.reason, error === hold.signal.reason) });
    const hold = await leases.acquire('job');
    let cause: unknown = 'not known';
    void hold.lost.then((loss) => (cause = loss?.reason));
    way.hooks.list = hanging;
    await store.leave(hold.entry, never);
    await open('two').leases.acquire('job', { wait: 'none' });
    await clock.advance(334);
    assert.deepEqual([hold.isHeld(), hold.signal.aborted], [false, true]);
    assert.equal(reasonOf(hold.signal), 'gone');
    assert.deepEqual(heard, ['gone', true]);
    assert.throws(() => hold.throwIfLost(), LeaseLostError);
    assert.equal(cause, 'not known');
    await clock.advance(250);
    assert.equal(cause, 'gone');
    assert.deepEqual(heard, ['gone', true]);
  });

  test('#13: of what was released there is no loss, and nobody waits for one', async () => {
    const { open } = leaseWorld();
    const hold = await open('one').leases.acquire('job');
    await hold.release();
    assert.equal(await hold.lost, undefined);
    assert.equal(hold.signal.aborted, false);
  });

  test('#78, #31: who waits through an outage comes to hold after it', async () => {
    const { clock, open, line } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const { leases, way } = open('two');
    const acquiring = leases.acquire('job');
    await clock.advance(100);
    way.deafToHints = true;
    for (const call of ['renew', 'list', 'leave', 'enter'] as const) way.hooks[call] = unreachable;
    await clock.advance(5_000);
    assert.equal((await line('job')).length, 1);
    for (const call of ['renew', 'list', 'leave', 'enter'] as const) delete way.hooks[call];
    await clock.advance(3_000);
    assert.equal((await line('job')).length, 2);
    await first.release();
    await clock.advance(way.pollIntervalMs);
    assert.equal((await acquiring).isHeld(), true);
  });
});

describe('others', () => {
  test('tristanls/dynamodb-lock-client #1: nothing is renewed after its release', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    const lazy = await leases.acquire('lazy');
    await clock.advance(1_000);
    assert.equal(await hold.release(), true);
    assert.equal(await lazy.release({ lazy: true }), false);
    const renewals = way.count('renew');
    await clock.advance(10_000);
    assert.equal(way.count('renew'), renewals);
    assert.equal(await leases.inspect('lazy'), null);
  });

  test('dynamodb-lock-client PR #116: one release that fails keeps no other from being done', async () => {
    const { clock, open, line } = leaseWorld();
    const { leases, way } = open('one');
    for (const name of ['a', 'b', 'c']) await leases.acquire(name, { ttlMs: 60_000 });
    let attempts = 0;
    way.hooks.leave = (pass) => (++attempts === 1 ? new Promise(() => {}) : pass());
    const disposing = leases[Symbol.asyncDispose]();
    await clock.advance(5_000);
    await disposing;
    const left = await Promise.all(['a', 'b', 'c'].map(line));
    assert.equal(left.flat().length, 0);
  });

  test('ShedLock #6: it is held for a least time, also when it is released sooner', async () => {
    const { clock, open } = leaseWorld();
    const { leases } = open('one');
    const hold = await leases.acquire('job', { holdAtLeastMs: 5_000 });
    await clock.advance(2_000);
    assert.equal(await hold.release(), true);
    assert.equal(hold.isHeld(), false);
    const waiting = open('two').leases.acquire('job');
    let isGranted = false;
    void waiting.then(() => (isGranted = true));
    await clock.advance(2_990);
    assert.equal(isGranted, false);
    await clock.advance(20);
    assert.equal(isGranted, true);
    // Released late enough it is free at once.
    const late = await leases.acquire('late', { holdAtLeastMs: 500 });
    await clock.advance(500);
    await late.release();
    assert.ok(await leases.tryAcquire('late'));
  });

  test('ShedLock #6: a wall that is set on makes the least time no shorter', async () => {
    const { clock, open } = leaseWorld();
    const hold = await open('one').leases.acquire('job', { ttlMs: 30_000, holdAtLeastMs: 5_000 });
    clock.jumpWall(10_000);
    assert.equal(await hold.release(), true);
    await clock.advance(4_990);
    const { leases } = open('two');
    assert.equal(await leases.tryAcquire('job'), null);
    await clock.advance(20);
    assert.ok(await leases.tryAcquire('job'));
  });

  test('ShedLock #6: a renewal under way does not make the least time longer', async () => {
    const { clock, open, sleep, line } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job', { holdAtLeastMs: 700 });
    way.hooks.renew = async (pass) => {
      delete way.hooks.renew;
      await sleep(150);
      return await pass();
    };
    await clock.advance(400);
    const releasing = hold.release();
    await clock.advance(310);
    assert.equal(await releasing, true);
    // The renewal came to the store at 484 ms, and would have kept it until 1484.
    assert.equal((await line('job')).length, 0);
  });
});
