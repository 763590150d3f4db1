import { describe, expect, test } from 'vitest';
import { leasePrefix, shortTokens, Users, userServers } from './etcd-users.ts';

/** For holds that have to be lost, and for one that must not be, which a busy machine may not renew for seconds. */
const shortTtlMs = 4000;
const longTtlMs = 20_000;
const cases = userServers.flatMap(([kind, start]) =>
  shortTokens.map(([name, options]) => ({ kind, name, start: () => start(options) })),
);

describe.concurrent.each(cases)('the library as a user of $kind with $name', { timeout: 90_000 }, ({ start }) => {
  test('reports a permission that was taken away during a hold, to the holder, a waiter and a watch', async () => {
    await using users = await Users.start(start);
    const client = users.client();
    await using leases = users.leases(shortTtlMs);
    await using others = users.leases(shortTtlMs);
    const hold = await leases.acquire('nightly');
    const waiting = others.acquire('nightly').catch((error: unknown) => error);
    const range = { prefix: `${leasePrefix}watched/` };
    const watch = client.watch(range);
    expect((await watch.next()).value).toMatchObject({ events: [] });
    await users.root(['role', 'revoke-permission', 'leases', leasePrefix, '--prefix']);
    const denied = {
      name: 'BackendError',
      backendCode: 'misconfigured',
      message: expect.stringContaining('grant the user readwrite on the prefix of the leases'),
      cause: expect.objectContaining({ name: 'EtcdError', etcdCode: 'denied' }),
    };
    expect(await hold.lost).toMatchObject({ name: 'LeaseLostError', reason: 'unreachable', cause: denied });
    expect(await waiting).toMatchObject(denied);
    await expect(leases.acquire('nightly')).rejects.toMatchObject(denied);
    // etcd checks the permission of a watch when it is created, and again when it breaks.
    const again = users.client().watch(range);
    await expect(again.next()).rejects.toMatchObject({ name: 'EtcdError', etcdCode: 'denied' });
    if (users.server.kind === 'tenure') {
      await expect(watch.next()).rejects.toMatchObject({ name: 'EtcdError', etcdCode: 'denied' });
    }
  });
});

describe.concurrent.each(userServers)('the library as a user of %s', { timeout: 90_000 }, (_kind, start) => {
  test('keeps a lease while authentication is enabled and disabled', async () => {
    await using users = await Users.start(() => start({ bcryptCost: 4 }), { isEnabled: false });
    await using leases = users.leases(longTtlMs);
    await using others = users.leases(longTtlMs);
    const hold = await leases.acquire('nightly');
    const waiting = others.acquire('nightly');
    await users.root(['auth', 'enable']);
    await hold.renew();
    expect(hold.isHeld()).toBe(true);
    await users.root(['auth', 'disable']);
    await hold.renew();
    expect(hold.isHeld()).toBe(true);
    await hold.release();
    await using next = await waiting;
    expect(next.isHeld()).toBe(true);
  });

  test('reports a password that was changed during a hold', async () => {
    await using users = await Users.start(() => start({ bcryptCost: 4 }));
    await using leases = users.leases(shortTtlMs);
    const hold = await leases.acquire('nightly');
    await users.root(['user', 'passwd', 'ada', '--new-password-stdin'], 'other');
    expect(await hold.lost).toMatchObject({
      reason: 'unreachable',
      cause: { backendCode: 'misconfigured', message: expect.stringContaining('give the right user and password') },
    });
  });
});
