import assert from 'node:assert/strict';
import { BackendError } from 'tenure';
import type { LeaseListener } from 'tenure';
import { describe, test } from 'vitest';
import { leaseWorld, unreachable } from './scripted-backend.ts';

function tellingListener(): { story: string[]; listener: LeaseListener } {
  const story: string[] = [];
  const listener: LeaseListener = {
    afterAcquire: (hold) => story.push(`acquired ${hold.name} ${hold.isHeld()}`),
    beforeRelease: (hold) => story.push(`release ${hold.name} ${hold.isHeld()}`),
    afterLoss: (hold, error) => story.push(`lost ${hold.name} ${error.reason} ${hold.signal.aborted}`),
  };
  return { story, listener };
}

describe('a handle of a lease', () => {
  test('is made without I/O, and is told apart from no other of its name (Misk, defects 1, 2 and 5)', async () => {
    const { open } = leaseWorld();
    const { leases, way } = open('one');
    const handle = leases.requestLease('job');
    assert.deepEqual([handle.isHeld(), handle.hold, handle.shouldHold()], [false, undefined, true]);
    assert.equal(await handle.release(), false);
    assert.deepEqual(way.calls, []);
    const hold = await handle.acquire();
    assert.equal(handle.isHeld(), true);
    // A second request, as at every tick of a cron, knows the hold of this process.
    const again = leases.requestLease('job');
    assert.equal(again.isHeld(), true);
    assert.equal(await again.acquire(), hold);
    assert.equal(again.hold, hold);
    assert.deepEqual(way.calls, ['enter']);
    assert.equal(await open('two').leases.requestLease('job').acquire(), null);
    assert.equal(await again.release(), true);
    assert.equal(handle.isHeld(), false);
  });

  test('makes one entry, however many acquire at once', async () => {
    const { clock, open, line } = leaseWorld();
    const { leases, way } = open('one');
    const handle = leases.requestLease('job');
    const all = await Promise.all(Array.from({ length: 10 }, async () => await handle.acquire()));
    assert.equal(new Set(all).size, 1);
    assert.equal(way.count('enter'), 1);
    await handle.release();

    const other = await open('two').leases.acquire('job');
    const cancelled = new AbortController();
    const first = handle.acquire({ wait: 'forever', signal: cancelled.signal });
    const refused = assert.rejects(first, /^Error: no more$/);
    const patient = handle.acquire({ wait: 'forever' });
    const timed = handle.acquire({ wait: 500 });
    await clock.advance(100);
    assert.equal(await handle.acquire(), null);
    assert.equal((await line('job')).length, 2);
    await clock.advance(400);
    assert.equal(await timed, null);
    // The one that has done the waiting gives up; who waited with it goes on.
    cancelled.abort(new Error('no more'));
    await refused;
    await clock.advance(10);
    assert.equal((await line('job')).length, 2);
    await other.release();
    await clock.advance(10);
    assert.equal(await patient, handle.hold);
    assert.equal(handle.isHeld(), true);
  });

  test('excludes the tasks of its own process that acquire by themselves', async () => {
    const { open } = leaseWorld();
    const { leases } = open('one');
    await leases.requestLease('job').acquire();
    assert.equal(await leases.tryAcquire('job'), null);
  });

  test('can be acquired anew after a loss, while it is being released, and not while it should not hold', async () => {
    const { clock, open } = leaseWorld();
    let isActive = true;
    const { leases, way } = open('one', { eligible: () => isActive });
    const handle = leases.requestLease('job');
    const first = await handle.acquire();
    await clock.stall(2_000);
    assert.equal(handle.isHeld(), false);
    const second = await handle.acquire();
    assert.ok(second!.fencingToken > first!.fencingToken);
    way.hooks.leave = async (pass) => {
      await new Promise<void>((resolve) => clock.setTimer(50, resolve));
      return await pass();
    };
    const releasing = handle.release();
    const third = handle.acquire();
    const alike = handle.acquire();
    await clock.advance(50);
    assert.equal(await releasing, true);
    assert.ok((await third)!.isHeld());
    assert.equal(await alike, await third);
    isActive = false;
    assert.equal(handle.shouldHold(), false);
    assert.equal(await handle.acquire(), await third);
    const released = handle.release();
    await clock.advance(50);
    await released;
    assert.equal(await handle.acquire(), null);
  });

  test('tells its listeners of its own hold, and the manager of all, and no listener can do harm', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const ofAll = tellingListener();
    const ofOne = tellingListener();
    const late = tellingListener();
    leases.addListener(ofAll.listener);
    leases.addListener({
      afterAcquire: () => {
        throw new Error('a listener');
      },
      beforeRelease: async (hold) => {
        await hold.release();
        throw new Error('another');
      },
    });
    const handle = leases.requestLease('job');
    const remove = handle.addListener(ofOne.listener);
    await handle.acquire();
    handle.addListener(late.listener);
    const other = await leases.acquire('other');
    await other.release();
    await clock.stall(2_000);
    assert.deepEqual(ofAll.story, [
      'acquired job true',
      'acquired other true',
      'release other true',
      'lost job stalled true',
    ]);
    assert.deepEqual(ofOne.story, ['acquired job true', 'lost job stalled true']);
    assert.deepEqual(late.story, ofOne.story);
    remove();
    await handle.acquire();
    assert.equal(ofOne.story.length, 2);
    assert.equal(late.story.length, 3);
    way.hooks.leave = unreachable;
    await assert.rejects(handle.release(), BackendError);
  });
});
