import { BackendError } from 'tenure';
import type { Leadership, LeaseListener } from 'tenure';
import { describe, expect, test } from 'vitest';
import { hanging, leaseFixture, unreachable } from './scripted-backend.ts';

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
  test('is created without I/O, and shares the hold of its name (Misk, defects 1, 2 and 5)', async () => {
    const { open } = leaseFixture();
    const { leases, backend } = open('one');
    const handle = leases.requestLease('job');
    expect([handle.isHeld(), handle.hold, handle.shouldHold()]).toStrictEqual([false, undefined, true]);
    expect(await handle.release()).toBe(false);
    expect(backend.calls).toEqual([]);
    const hold = await handle.acquire();
    expect(handle.isHeld()).toBe(true);
    // A second request, as at every run of a cron job, finds the hold of this process.
    const again = leases.requestLease('job');
    expect(again.isHeld()).toBe(true);
    expect(await again.acquire()).toBe(hold);
    expect(again.hold).toBe(hold);
    expect(backend.calls).toEqual(['enter']);
    expect(await open('two').leases.requestLease('job').acquire()).toBe(null);
    expect(await again.release()).toBe(true);
    expect(handle.isHeld()).toBe(false);
  });

  test('makes one entry for any number of concurrent acquisitions', async () => {
    const { clock, open, queue } = leaseFixture();
    const { leases, backend } = open('one');
    const handle = leases.requestLease('job');
    const all = await Promise.all(Array.from({ length: 10 }, async () => await handle.acquire()));
    expect(new Set(all).size).toBe(1);
    expect(backend.count('enter')).toBe(1);
    await handle.release();

    const other = await open('two').leases.acquire('job');
    const cancelled = new AbortController();
    const first = handle.acquire({ wait: 'forever', signal: cancelled.signal });
    const refused = first.catch((error: unknown) => error);
    const patient = handle.acquire({ wait: 'forever' });
    const timed = handle.acquire({ wait: 500 });
    await clock.advance(100);
    expect(await handle.acquire()).toBe(null);
    expect((await queue('job')).length).toBe(2);
    await clock.advance(400);
    expect(await timed).toBe(null);
    // The caller that started the wait gives up; the other one keeps waiting.
    cancelled.abort(new Error('no more'));
    expect(await refused).toMatchObject({ message: 'no more' });
    await clock.advance(10);
    expect((await queue('job')).length).toBe(2);
    await other.release();
    await clock.advance(10);
    expect(await patient).toBe(handle.hold);
    expect(handle.isHeld()).toBe(true);
  });

  test('excludes tasks of its own process that call acquire of the manager', async () => {
    const { open } = leaseFixture();
    const { leases } = open('one');
    await leases.requestLease('job').acquire();
    expect(await leases.tryAcquire('job')).toBe(null);
  });

  test('can be acquired again after a loss or during its release, but not while it should not hold', async () => {
    const { clock, open } = leaseFixture();
    let isActive = true;
    const { leases, backend } = open('one', { eligible: () => isActive });
    const handle = leases.requestLease('job');
    const first = await handle.acquire();
    await clock.stall(2_000);
    expect(handle.isHeld()).toBe(false);
    const second = await handle.acquire();
    expect(second!.fencingToken).toBeGreaterThan(first!.fencingToken);
    backend.hooks.leave = async (pass) => {
      await new Promise<void>((resolve) => clock.setTimer(50, resolve));
      return await pass();
    };
    const releasing = handle.release();
    const third = handle.acquire();
    const alike = handle.acquire();
    await clock.advance(50);
    expect(await releasing).toBe(true);
    expect((await third)!.isHeld()).toBe(true);
    expect(await alike).toBe(await third);
    isActive = false;
    expect(handle.shouldHold()).toBe(false);
    expect(await handle.acquire()).toBe(await third);
    const released = handle.release();
    await clock.advance(50);
    await released;
    expect(await handle.acquire()).toBe(null);
  });

  test('retries for the other callers when the shared acquisition fails or is cancelled', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const handle = leases.requestLease('job');
    const cancelled = new AbortController();
    backend.hooks.enter = hanging;
    const first = handle.acquire({ signal: cancelled.signal }).catch((error: unknown) => error);
    const second = handle.acquire();
    await clock.advance(10);
    delete backend.hooks.enter;
    cancelled.abort(new Error('no more'));
    expect(await first).toMatchObject({ message: 'no more' });
    expect(await second).toBe(handle.hold);
    expect(handle.isHeld()).toBe(true);

    // A release that hangs does not block a cancellation either.
    backend.hooks.leave = hanging;
    void handle.release().catch(() => {});
    const again = new AbortController();
    const refused = handle.acquire({ signal: again.signal }).catch((error: unknown) => error);
    await clock.advance(10);
    again.abort(new Error('enough'));
    expect(await refused).toMatchObject({ message: 'enough' });
  });

  test('counts the release of its last hold as part of the wait time', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const handle = leases.requestLease('job');
    await handle.acquire();
    backend.hooks.leave = hanging;
    void handle.release().catch(() => {});
    let acquired: unknown = 'nothing yet';
    void handle.acquire({ wait: 100 }).then((hold) => (acquired = hold));
    await clock.advance(99);
    expect(acquired).toBe('nothing yet');
    await clock.advance(1);
    expect(acquired).toBe(null);
    const cancelled = AbortSignal.abort(new Error('enough'));
    await expect(handle.acquire({ wait: 100, signal: cancelled })).rejects.toThrow('enough');
  });

  test('removes the entry that a loss has left when it is released', async () => {
    const { clock, open, queue } = leaseFixture();
    const { leases, backend } = open('one');
    const handle = leases.requestLease('job');
    await handle.acquire();
    backend.hooks.renew = hanging;
    await clock.advance(950);
    expect(handle.isHeld()).toBe(false);
    // The work may still be running until the holder releases.
    expect((await queue('job')).length).toBe(1);
    expect(await handle.release()).toBe(false);
    await clock.advance(0);
    expect(await queue('job')).toEqual([]);
  });

  test('does not acquire a lease that it should no longer hold when its turn comes', async () => {
    const { clock, open, queue } = leaseFixture();
    const other = await open('other').leases.acquire('job');
    let isActive = true;
    const { leases } = open('one', { eligible: () => isActive });
    const handle = leases.requestLease('job');
    const waiting = [handle.acquire({ wait: 'forever' }), handle.acquire({ wait: 'forever' })];
    await clock.advance(100);
    isActive = false;
    await other.release();
    await clock.advance(10);
    expect(await Promise.all(waiting)).toEqual([null, null]);
    expect(await queue('job')).toEqual([]);
  });

  test('should not hold while `eligible` throws, and no member joins then either', async () => {
    const { clock, open } = leaseFixture();
    let isKnown = false;
    const eligible = (): boolean => {
      if (!isKnown) throw new Error('not known');
      return true;
    };
    const { leases } = open('one', { eligible });
    const handle = leases.requestLease('job');
    expect(handle.shouldHold()).toBe(false);
    expect(await handle.acquire()).toBe(null);
    const membership = await leases.membership('group', { eligible });
    expect(membership.isMember()).toBe(false);
    const elected: Leadership[] = [];
    const campaign = leases.election('leader', { eligible }).campaign('one');
    void campaign.then((leadership) => elected.push(leadership));
    await clock.advance(5_000);
    expect(elected.length).toBe(0);
    isKnown = true;
    await clock.advance(1_000);
    expect(await handle.acquire()).toBeTruthy();
    expect(membership.isMember()).toBe(true);
    expect(elected[0]?.isHeld()).toBe(true);
    isKnown = false;
    await clock.advance(1_000);
    expect(membership.isMember()).toBe(false);
    expect(elected[0]?.isHeld()).toBe(false);
    await leases[Symbol.asyncDispose]();
  });

  test('calls its listeners for its own hold and those of the manager for all, and ignores their errors', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
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
    expect(ofAll.story).toEqual([
      'acquired job true',
      'acquired other true',
      'release other true',
      'lost job stalled true',
    ]);
    expect(ofOne.story).toEqual(['acquired job true', 'lost job stalled true']);
    expect(late.story).toStrictEqual(ofOne.story);
    remove();
    await handle.acquire();
    expect(ofOne.story.length).toBe(2);
    expect(late.story.length).toBe(3);
    backend.hooks.leave = unreachable;
    await expect(handle.release()).rejects.toThrow(BackendError);
  });
});
