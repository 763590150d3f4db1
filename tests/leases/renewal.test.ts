import assert from 'node:assert/strict';
import { BackendError } from 'tenure';
import type { Renewal } from 'tenure';
import { describe, test } from 'vitest';
import { hanging, leaseWorld, unreachable } from './scripted-backend.ts';

describe('renewal', () => {
  test('acquiring and releasing is two calls, and a thousand holds take few calls to be renewed', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one', { ttlMs: 30_000 });
    const once = await leases.acquire('once');
    await once.release();
    assert.deepEqual(way.calls, ['enter', 'leave']);
    const holds = [];
    for (let at = 0; at < 1_000; at++) {
      holds.push(await leases.acquire(`job-${at}`));
      await clock.advance(7);
    }
    way.calls.length = 0;
    await clock.advance(60_000);
    assert.ok(holds.every((hold) => hold.isHeld()));
    // Six thirds of a life, two calls each since one takes 500 at most, and some more while they still come together.
    assert.ok(way.calls.length <= 24, `${way.calls.length} calls`);
    assert.ok(way.calls.every((call) => call === 'renew'));
    assert.ok(clock.timerCount <= 2, `${clock.timerCount} timers`);
  });

  test('has one call under way for an entry at most, and none when it is not wanted', async () => {
    const { clock, open, store } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    const manual = await leases.acquire('manual', { autoRenew: false, ttlMs: 60_000 });
    for (const name of ['a', 'b', 'c', 'd']) {
      await leases.acquire(name);
      await clock.advance(70);
    }
    const underWay = new Map<string, number>();
    let most = 0;
    way.renew = async (renewals, signal) => {
      way.calls.push('renew');
      for (const { id } of renewals) {
        underWay.set(id, (underWay.get(id) ?? 0) + 1);
        most = Math.max(most, underWay.get(id)!);
      }
      await new Promise<void>((resolve) => clock.setTimer(150, resolve));
      for (const { id } of renewals) underWay.set(id, underWay.get(id)! - 1);
      return await store.renew(renewals, signal);
    };
    const asked = Array.from({ length: 5 }, async () => await hold.renew());
    await clock.advance(5_000);
    await Promise.all(asked);
    assert.equal(hold.isHeld(), true);
    assert.equal(most, 1);
    const renewed = manual.renew();
    await clock.advance(150);
    await renewed;
    await clock.advance(53_849);
    assert.equal(manual.isHeld(), true);
    await clock.advance(1);
    assert.equal(manual.isHeld(), false);
  });

  test('goes on for who waits, also when the hold is not to be renewed, which then has its whole life', async () => {
    const { clock, open, line } = leaseWorld();
    const first = await open('one').leases.acquire('job');
    const second = open('two').leases.acquire('job', { autoRenew: false });
    await clock.advance(0);
    const third = open('three').leases.acquire('job');
    await clock.advance(0);
    const places = async (): Promise<string[]> =>
      (await line('job')).map(({ holder, ticket }) => `${holder}:${ticket}`);
    const before = await places();
    assert.equal(before.length, 3);
    await clock.advance(5_000);
    assert.deepEqual(await places(), before);
    await first.release();
    await clock.advance(0);
    const hold = await second;
    await clock.advance(899);
    assert.equal(hold.isHeld(), true);
    await clock.advance(1);
    assert.equal(hold.isHeld(), false);
    await clock.advance(110);
    assert.equal((await third).isHeld(), true);
  });

  test('one entry that the backend takes offence at costs no other its renewal', async () => {
    const { clock, open, store } = leaseWorld();
    const { leases, way } = open('one');
    const holds = [];
    for (let at = 0; at < 20; at++) holds.push(await leases.acquire(`job-${at}`));
    way.renew = async (renewals: readonly Renewal[], signal) => {
      if (renewals.some(({ name }) => name === 'lease/job-13')) {
        throw new BackendError('scripted', 'refused', 'an unlucky number');
      }
      return await store.renew(renewals, signal);
    };
    await clock.advance(3_000);
    assert.deepEqual(
      holds.filter((hold) => !hold.isHeld()).map(({ name }) => name),
      ['job-13'],
    );
  });

  test('a short life that can not be renewed in time costs a long one nothing', async () => {
    const { clock, open } = leaseWorld();
    const { leases, way } = open('one');
    const long = await leases.acquire('long', { ttlMs: 60_000 });
    await clock.advance(19_700);
    const short = await leases.acquire('short', { ttlMs: 300 });
    way.hooks.renew = hanging;
    await clock.advance(300);
    assert.equal(short.isHeld(), false);
    await clock.advance(30_000);
    delete way.hooks.renew;
    await clock.advance(60_000);
    assert.equal(long.isHeld(), true);
  });

  test('by hand it says whether it was done, and that it is held all the same when not', async () => {
    const { open, store } = leaseWorld();
    const { leases, way } = open('one');
    const hold = await leases.acquire('job');
    way.hooks.renew = unreachable;
    await assert.rejects(hold.renew(), BackendError);
    assert.equal(hold.isHeld(), true);
    delete way.hooks.renew;
    await hold.renew();
    await store.leave(hold.entry, new AbortController().signal);
    await assert.rejects(hold.renew(), { name: 'LeaseLostError', reason: 'revoked' });
  });
});
