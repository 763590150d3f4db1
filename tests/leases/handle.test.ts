import assert from 'node:assert/strict';
import { BackendError } from 'tenure';
import type { Leadership, LeaseListener } from 'tenure';
import { describe, test } from 'vitest';
import { hanging, leaseWorld, unreachable } from './scripted-backend.ts';

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

  test('whose one acquisition fails or is cancelled asks for itself for whoever came to it', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const handle = leases.requestLease('job');
    const cancelled = new AbortController();
    way.hooks.enter = hanging;
    const first = assert.rejects(handle.acquire({ signal: cancelled.signal }), /^Error: no more$/);
    const second = handle.acquire();
    await clock.advance(10);
    delete way.hooks.enter;
    cancelled.abort(new Error('no more'));
    await first;
    assert.equal(await second, handle.hold);
    assert.equal(handle.isHeld(), true);

    // Nor does a release that hangs keep anybody from being cancelled.
    way.hooks.leave = hanging;
    void handle.release().catch(() => {});
    const again = new AbortController();
    const refused = assert.rejects(handle.acquire({ signal: again.signal }), /^Error: enough$/);
    await clock.advance(10);
    again.abort(new Error('enough'));
    await refused;
  });

  test('gives on what a loss has left of its entry when it is released', async () => {
    const { clock, open, line } = leaseWorld();
    const { leases, way } = open('one');
    const handle = leases.requestLease('job');
    await handle.acquire();
    way.hooks.renew = hanging;
    await clock.advance(950);
    assert.equal(handle.isHeld(), false);
    // The work may still be going on, until the holder says that it has ended.
    assert.equal((await line('job')).length, 1);
    assert.equal(await handle.release(), false);
    await clock.advance(0);
    assert.deepEqual(await line('job'), []);
  });

  test('acquires nothing that it should not hold any more when its turn comes', async () => {
    const { clock, open, line } = leaseWorld();
    const other = await open('other').leases.acquire('job');
    let isActive = true;
    const { leases } = open('one', { eligible: () => isActive });
    const handle = leases.requestLease('job');
    const waiting = [handle.acquire({ wait: 'forever' }), handle.acquire({ wait: 'forever' })];
    await clock.advance(100);
    isActive = false;
    await other.release();
    await clock.advance(10);
    assert.deepEqual(await Promise.all(waiting), [null, null]);
    assert.deepEqual(await line('job'), []);
  });

  test('should not hold while the function that is asked throws, and no member is made then either', async () => {
    const { clock, open } = leaseWorld();
    let isKnown = false;
    const eligible = (): boolean => {
      if (!isKnown) throw new Error('nobody knows');
      return true;
    };
    const { leases } = open('one', { eligible });
    const handle = leases.requestLease('job');
    assert.equal(handle.shouldHold(), false);
    assert.equal(await handle.acquire(), null);
    const membership = await leases.membership('group', { eligible });
    assert.equal(membership.isMember(), false);
    const elected: Leadership[] = [];
    const campaign = leases.election('leader', { eligible }).campaign('one');
    void campaign.then((leadership) => elected.push(leadership));
    await clock.advance(5_000);
    assert.equal(elected.length, 0);
    isKnown = true;
    await clock.advance(1_000);
    assert.ok(await handle.acquire());
    assert.equal(membership.isMember(), true);
    assert.equal(elected[0]?.isHeld(), true);
    isKnown = false;
    await clock.advance(1_000);
    assert.equal(membership.isMember(), false);
    assert.equal(elected[0]?.isHeld(), false);
    await leases[Symbol.asyncDispose]();
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
