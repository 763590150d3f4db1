import { BackendError } from 'tenure';
import type { Renewal } from 'tenure';
import { describe, expect, test } from 'vitest';
import { hanging, leaseFixture, unreachable } from './scripted-backend.ts';

describe('renewal', () => {
  test('an acquisition and a release are two calls, and a thousand holds are renewed in few calls', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one', { ttlMs: 30_000 });
    const once = await leases.acquire('once');
    await once.release();
    expect(backend.calls).toEqual(['enter', 'leave']);
    const holds = [];
    for (let at = 0; at < 1_000; at++) {
      holds.push(await leases.acquire(`job-${at}`));
      await clock.advance(7);
    }
    backend.calls.length = 0;
    await clock.advance(60_000);
    expect(holds.every((hold) => hold.isHeld())).toBe(true);
    // Six renewals of two calls each, since one call takes 500 at most, and some more until the renewals are batched.
    expect(backend.calls.length, `${backend.calls.length} calls`).toBeLessThanOrEqual(24);
    expect(backend.calls.every((call) => call === 'renew')).toBe(true);
    expect(clock.timerCount, `${clock.timerCount} timers`).toBeLessThanOrEqual(2);
  });

  test('has at most one call in flight per entry, and none without autoRenew', async () => {
    const { clock, open, store } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    const manual = await leases.acquire('manual', { autoRenew: false, ttlMs: 60_000 });
    for (const name of ['a', 'b', 'c', 'd']) {
      await leases.acquire(name);
      await clock.advance(70);
    }
    const underWay = new Map<string, number>();
    let most = 0;
    backend.renew = async (renewals, signal) => {
      backend.calls.push('renew');
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
    expect(hold.isHeld()).toBe(true);
    expect(most).toBe(1);
    const renewed = manual.renew();
    await clock.advance(150);
    await renewed;
    await clock.advance(53_849);
    expect(manual.isHeld()).toBe(true);
    await clock.advance(1);
    expect(manual.isHeld()).toBe(false);
  });

  test('continues while an entry waits, even with autoRenew off; the hold then has its whole TTL', async () => {
    const { clock, open, queue } = leaseFixture();
    const first = await open('one').leases.acquire('job');
    const second = open('two').leases.acquire('job', { autoRenew: false });
    await clock.advance(0);
    const third = open('three').leases.acquire('job');
    await clock.advance(0);
    const places = async (): Promise<string[]> =>
      (await queue('job')).map(({ holder, sequence }) => `${holder}:${sequence}`);
    const before = await places();
    expect(before.length).toBe(3);
    await clock.advance(5_000);
    expect(await places()).toStrictEqual(before);
    await first.release();
    await clock.advance(0);
    const hold = await second;
    await clock.advance(899);
    expect(hold.isHeld()).toBe(true);
    await clock.advance(1);
    expect(hold.isHeld()).toBe(false);
    await clock.advance(110);
    expect((await third).isHeld()).toBe(true);
  });

  test('an entry that the backend refuses costs no other its renewal', async () => {
    const { clock, open, store } = leaseFixture();
    const { leases, backend } = open('one');
    const holds = [];
    for (let at = 0; at < 20; at++) holds.push(await leases.acquire(`job-${at}`));
    backend.renew = async (renewals: readonly Renewal[], signal) => {
      if (renewals.some(({ name }) => name === 'lease/job-13')) {
        throw new BackendError('scripted', 'refused', 'an unlucky number');
      }
      return await store.renew(renewals, signal);
    };
    await clock.advance(3_000);
    expect(holds.filter((hold) => !hold.isHeld()).map(({ name }) => name)).toEqual(['job-13']);
  });

  test('a short TTL that cannot be renewed in time does not affect a long one', async () => {
    const { clock, open } = leaseFixture();
    const { leases, backend } = open('one');
    const long = await leases.acquire('long', { ttlMs: 60_000 });
    await clock.advance(19_700);
    const short = await leases.acquire('short', { ttlMs: 300 });
    backend.hooks.renew = hanging;
    await clock.advance(300);
    expect(short.isHeld()).toBe(false);
    await clock.advance(30_000);
    delete backend.hooks.renew;
    await clock.advance(60_000);
    expect(long.isHeld()).toBe(true);
  });

  test('by hand reports whether it succeeded, and a failure does not end the hold', async () => {
    const { open, store } = leaseFixture();
    const { leases, backend } = open('one');
    const hold = await leases.acquire('job');
    backend.hooks.renew = unreachable;
    await expect(hold.renew()).rejects.toThrow(BackendError);
    expect(hold.isHeld()).toBe(true);
    delete backend.hooks.renew;
    await hold.renew();
    await store.leave(hold.entry, new AbortController().signal);
    await expect(hold.renew()).rejects.toMatchObject({ name: 'LeaseLostError', reason: 'revoked' });
  });
});
