// Reason for length: one file for all the rules, so that a missing one is seen at once.
import assert from 'node:assert/strict';
import { AcquireTimeoutError, BackendError, ClosedError, LeaseHeldError, LeaseLostError, UsageError } from 'tenure';
import { describe, test } from 'vitest';
import { answerLost, deferred, hanging, leaseWorld, unreachable, withOtherWall } from './scripted-backend.ts';

function reasonOf(signal: AbortSignal): string | undefined {
  return signal.reason instanceof LeaseLostError ? signal.reason.reason : undefined;
}

describe('rule 1: a hold counts from when it was sent, less a margin', () => {
  test('of the enter, however long the answer took', async () => {
    const { clock, open, sleep } = leaseWorld();
    const { leases, way } = open('one');
    way.hooks.enter = async (pass) => {
      const entered = await pass();
      await sleep(400);
      return entered;
    };
    const acquiring = leases.acquire('job', { autoRenew: false });
    await clock.advance(400);
    const hold = await acquiring;
    await clock.advance(499);
    assert.equal(hold.signal.aborted, false);
    await clock.advance(1);
    assert.equal(hold.signal.aborted, true);
    assert.equal(reasonOf(hold.signal), 'expired');
  });

  test('of a renewal, and the store still has the entry when the signal aborts', async () => {
    const { clock, open, line, sleep } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    way.hooks.renew = async (pass) => {
      way.hooks.renew = hanging;
      const renewed = await pass();
      await sleep(160);
      return renewed;
    };
    // It is sent after a third of a second.
    await clock.advance(334 + 890);
    assert.equal(hold.isHeld(), true);
    await clock.advance(10);
    assert.equal(hold.signal.aborted, true);
    assert.equal((await line('job')).length, 1);
    await clock.advance(100);
    assert.equal((await line('job')).length, 0);
  });
});

describe('rule 2: both clocks judge, at every use', () => {
  test('the wall that jumps ahead, as after a suspend', async () => {
    const { clock, open } = leaseWorld();
    const hold = await open('one').leases.acquire('job');
    clock.jumpWall(1_000);
    assert.equal(hold.isHeld(), false);
    assert.equal(reasonOf(hold.signal), 'stalled');
    assert.throws(() => hold.throwIfLost(), LeaseLostError);
  });

  test('the wall that is set back changes nothing, then or later', async () => {
    const { clock, open } = leaseWorld();
    const hold = await open('one').leases.acquire('job');
    clock.jumpWall(-3_600_000);
    await clock.advance(5_000);
    assert.equal(hold.isHeld(), true);
    clock.jumpWall(1_000);
    assert.equal(hold.isHeld(), false);
  });

  test('an event loop that stood still, before any timer could run', async () => {
    const { clock, open } = leaseWorld();
    const hold = await open('one').leases.acquire('job');
    const stalled = clock.stall(1_500);
    assert.equal(hold.isHeld(), false);
    assert.equal(reasonOf(hold.signal), 'stalled');
    await stalled;
  });

  test('the timer that runs late tells who works and never looks', async () => {
    const { clock, open } = leaseWorld();
    const hold = await open('one').leases.acquire('job');
    await clock.stall(1_500);
    assert.equal(reasonOf(hold.signal), 'stalled');
  });
});

describe('rule 3: each renewal has its own deadline, and there are many', () => {
  test('one that hangs is given up in time for others', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    let attempts = 0;
    way.hooks.renew = (pass) => (++attempts < 3 ? new Promise(() => {}) : pass());
    await clock.advance(10_000);
    assert.equal(hold.isHeld(), true);
    assert.ok(attempts > 10);
  });

  test('when all fail the hold is lost in time, and says why', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    way.hooks.renew = unreachable;
    await clock.advance(890);
    assert.equal(hold.isHeld(), true);
    await clock.advance(10);
    assert.equal(reasonOf(hold.signal), 'unreachable');
    assert.ok((hold.signal.reason as LeaseLostError).cause instanceof BackendError);
    assert.ok(way.count('renew') >= 5);
  });
});

describe('rule 4: tokens never go back', () => {
  test('not when the line has been empty, whoever asks', async () => {
    const { clock, open } = leaseWorld();
    let last = 0n;
    for (const holder of ['one', 'two', 'one', 'three']) {
      const hold = await open(holder).leases.acquire('job');
      assert.ok(hold.fencingToken > last);
      last = hold.fencingToken;
      if (holder === 'two') await clock.stall(2_000);
      else await hold.release();
    }
  });
});

describe('rule 5: after an outage nothing is held before the store has said so', () => {
  test('one that waited and comes first must be renewed before it holds', async () => {
    const { clock, open } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const { leases, way } = open('two');
    let isGranted = false;
    const acquiring = leases.acquire('job').then((hold) => {
      isGranted = true;
      return hold;
    });
    await clock.advance(0);
    // Its entry lives on in the store, and it does not know.
    way.hooks.renew = answerLost;
    await clock.advance(3_000);
    await first.release();
    await clock.advance(2_000);
    assert.equal(isGranted, false);
    delete way.hooks.renew;
    await clock.advance(2_500);
    assert.equal((await acquiring).isHeld(), true);
  });

  test('one that was taken out of the line does not take an empty line for its turn', async () => {
    const { clock, open, store, line } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const second = open('two').leases.acquire('job');
    await clock.advance(0);
    for (const entry of (await line('job')).toReversed()) await store.leave(entry, new AbortController().signal);
    await clock.advance(100);
    const hold = await second;
    assert.ok(hold.fencingToken > first.fencingToken + 1n);
    assert.deepEqual(
      (await line('job')).map(({ ticket }) => ticket),
      [hold.fencingToken],
    );
  });

  test('one whose entry is gone goes to the end of the line', async () => {
    const { clock, open, store, line } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const second = open('two').leases.acquire('job');
    await clock.advance(0);
    const third = open('three').leases.acquire('job');
    await clock.advance(0);
    await store.leave((await line('job'))[1]!, new AbortController().signal);
    await clock.advance(500);
    assert.deepEqual(
      (await line('job')).map(({ holder }) => holder),
      ['one', 'three', 'two'],
    );
    await first.release();
    await clock.advance(0);
    await (await third).release();
    await clock.advance(0);
    assert.equal((await second).isHeld(), true);
  });
});

describe('rule 6: who waits stands in line, and who cancels leaves it', () => {
  test('at once when it is cancelled', async () => {
    const { clock, open, line } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const controller = new AbortController();
    const acquiring = open('two').leases.acquire('job', { signal: controller.signal });
    await clock.advance(100);
    assert.equal((await line('job')).length, 2);
    controller.abort(new Error('no more'));
    await assert.rejects(acquiring, /^Error: no more$/);
    assert.deepEqual(
      (await line('job')).map(({ ticket }) => ticket),
      [first.fencingToken],
    );
  });

  test('in the moment in which it would have been granted', async () => {
    const { clock, open, line } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const controller = new AbortController();
    const { leases, way } = open('two');
    const acquiring = leases.acquire('job', { signal: controller.signal });
    const refused = assert.rejects(acquiring, /^Error: no more$/);
    await clock.advance(100);
    const third = open('three').leases.acquire('job');
    await clock.advance(100);
    way.hooks.list = async (pass) => {
      const entries = await pass();
      controller.abort(new Error('no more'));
      return entries;
    };
    await first.release();
    await clock.advance(0);
    await refused;
    assert.equal((await third).isHeld(), true);
    assert.equal((await line('job')).length, 1);
  });

  test('when its time is up, with an error that says how long that was', async () => {
    const { clock, open, line } = leaseWorld();
    await open('one').leases.acquire('job');
    const { leases } = open('two');
    const acquiring = leases.acquire('job', { wait: 2_500 });
    const timedOut = assert.rejects(acquiring, (error) => {
      return error instanceof AcquireTimeoutError && error.waitedMs === 2_500 && error.leaseName === 'job';
    });
    await clock.advance(2_500);
    await timedOut;
    assert.equal((await line('job')).length, 1);
    assert.equal(await leases.tryAcquire('job', { wait: 'none' }), null);
  });

  test('looks again by itself when every hint is lost', async () => {
    const { clock, open } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const { leases, way } = open('two');
    way.deafToHints = true;
    const acquiring = leases.acquire('job');
    await clock.advance(100);
    await first.release();
    await clock.advance(way.pollIntervalMs);
    assert.equal((await acquiring).isHeld(), true);
  });

  test('a hint that comes while it reads is not lost', async () => {
    const { clock, open, store } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const { leases, way } = open('two');
    const acquiring = leases.acquire('job');
    const answer = deferred<void>();
    way.hooks.list = async (pass) => {
      delete way.hooks.list;
      const entries = await pass();
      await answer.promise;
      return entries;
    };
    await clock.advance(0);
    await store.leave(first.entry, new AbortController().signal);
    await clock.advance(10);
    answer.resolve();
    await clock.advance(0);
    assert.equal((await acquiring).isHeld(), true);
  });
});

describe('rule 7: a release ends its own entry only', () => {
  test('that of the next holder stays', async () => {
    const { clock, open } = leaseWorld();
    const late = await open('one').leases.acquire('job');
    const stalled = clock.stall(2_000);
    const next = await open('two').leases.acquire('job');
    assert.equal(await late.release(), false);
    await stalled;
    await clock.advance(5_000);
    assert.equal(next.isHeld(), true);
  });

  test('a manager that is disposed of tells who works to stop, waits for that, and then releases', async () => {
    const { clock, open, line, sleep } = leaseWorld();
    const { leases } = open('one');
    const story: string[] = [];
    leases.addListener({ beforeRelease: (hold) => story.push(`release ${hold.isHeld()}`) });
    const working = leases.withLease('job', {}, async (hold) => {
      await new Promise<void>((resolve) => hold.signal.addEventListener('abort', () => resolve()));
      story.push(`told by ${(hold.signal.reason as Error).name}`);
      await sleep(300);
      story.push(`stopped, ${(await line('job')).length} in line`);
      return 'done';
    });
    await clock.advance(0);
    const disposing = leases[Symbol.asyncDispose]().then(() => story.push('disposed'));
    await clock.advance(300);
    await disposing;
    assert.equal(await working, 'done');
    assert.deepEqual(story, ['told by ClosedError', 'stopped, 1 in line', 'release true', 'disposed']);
    assert.equal((await line('job')).length, 0);
    await assert.rejects(leases.acquire('job'), ClosedError);
    await assert.rejects(leases.inspect('job'), ClosedError);
    assert.throws(() => leases.requestLease('job'), ClosedError);
    await leases[Symbol.asyncDispose]();
  });
});

describe('rule 8: each failure has an error of its own', () => {
  test('held by another, timed out, cancelled, lost, no backend, closed, misuse', async () => {
    const { clock, open } = leaseWorld();
    const hold = await open('one').leases.acquire('job');
    const { leases, way } = open('two');
    await assert.rejects(leases.acquire('job', { wait: 'none' }), (error) => {
      return error instanceof LeaseHeldError && error.heldBy === 'one';
    });
    const timedOut = assert.rejects(leases.acquire('job', { wait: 'ttl' }), AcquireTimeoutError);
    await clock.advance(1_000);
    await timedOut;
    await assert.rejects(leases.acquire('job', { signal: AbortSignal.abort() }), { name: 'AbortError' });
    await clock.stall(2_000);
    assert.throws(() => hold.throwIfLost(), LeaseLostError);
    way.hooks.enter = unreachable;
    await assert.rejects(leases.acquire('job'), BackendError);
    await assert.rejects(leases.tryAcquire('job'), BackendError);
    way.hooks.enter = async () => {
      throw new TypeError('a bug of the backend');
    };
    await assert.rejects(leases.acquire('job'), (error) => {
      return error instanceof BackendError && error.cause instanceof TypeError;
    });
    delete way.hooks.enter;
    const released = await leases.acquire('job');
    await released.release();
    assert.throws(() => released.throwIfLost(), ClosedError);
    await assert.rejects(released.renew(), ClosedError);
  });

  test('misuse is told before anything is sent', async () => {
    const { open } = leaseWorld();
    const { leases, way } = open('one');
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
    for (const misuse of bad) await assert.rejects(async () => await misuse(), UsageError, misuse.toString());
    assert.throws(() => leases.requestLease(''), UsageError);
    assert.throws(() => leases.election(''), UsageError);
    assert.throws(() => leases.readWriteLock(''), UsageError);
    assert.throws(() => open('one', { ttlMs: 0 }), UsageError);
    assert.throws(() => open(''), UsageError);
    assert.deepEqual(way.calls, []);
  });
});

describe('rule 9: no two walls are compared', () => {
  test('machines that are years apart share leases like others', async () => {
    const { clock, open, line } = leaseWorld();
    const year = 365 * 24 * 3_600_000;
    const one = open('one', { clock: withOtherWall(clock, 20 * year) }).leases;
    const two = open('two', { clock: withOtherWall(clock, -20 * year) }).leases;
    const hold = await one.acquire('job');
    const waiting = two.acquire('job');
    await clock.advance(10_000);
    assert.equal(hold.isHeld(), true);
    await hold.release();
    await clock.advance(0);
    const next = await waiting;
    await clock.advance(10_000);
    assert.equal(next.isHeld(), true);
    assert.equal((await line('job')).length, 1);
  });
});

describe('rule 10: a watch begins with what is there now and never ends in silence', () => {
  test('it goes on through an outage, and ends by an error', async () => {
    const { clock, open } = leaseWorld();
    const { leases: other } = open('other');
    const { leases, way } = open('one');
    await other.acquire('job', { data: 'here' });
    const seen: (string | undefined)[] = [];
    const watching = (async () => {
      for await (const info of leases.watch('job')) seen.push(info?.data);
    })();
    const ended = assert.rejects(watching, ClosedError);
    await clock.advance(0);
    assert.deepEqual(seen, ['here']);
    way.hooks.list = hanging;
    way.deafToHints = true;
    await other[Symbol.asyncDispose]();
    await clock.advance(20_000);
    assert.deepEqual(seen, ['here']);
    delete way.hooks.list;
    await clock.advance(15_000);
    assert.deepEqual(seen, ['here', undefined]);
    await leases[Symbol.asyncDispose]();
    await ended;
  });

  test('an error that will not pass is thrown', async () => {
    const { open } = leaseWorld();
    const { leases, way } = open('one');
    way.hooks.list = async () => {
      throw new BackendError('scripted', 'not-migrated', 'no such table');
    };
    const read = async (): Promise<void> => {
      for await (const _ of leases.watch('job')) continue;
    };
    await assert.rejects(read(), BackendError);
  });
});
