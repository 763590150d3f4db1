import assert from 'node:assert/strict';
import { createLeaseManager } from 'tenure';
import { EtcdClient, etcdBackend } from 'tenure/etcd';
import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import { etcdServerKinds } from './etcd-servers.ts';
import type { EtcdServer } from './etcd-servers.ts';

/** Waited out once. */
const ttlMs = inject('effort') === 'soak' ? 20_000 : 8_000;
/** etcd tells what is left in whole seconds. */
const roundingMs = 1000;

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))('leases in $name that no entry needs', (kind) => {
  let server: EtcdServer;
  let client: EtcdClient;

  beforeAll(async () => {
    server = await kind.start();
    client = new EtcdClient({ endpoints: server.endpoint });
  });
  afterAll(async () => {
    client.close();
    await server.dispose();
  });

  async function leaseIds(): Promise<readonly bigint[]> {
    return await client.lease.list();
  }

  test('serve the next entry with its whole life, and end when nobody wants them', async () => {
    const backend = etcdBackend({ client });
    await using leases = createLeaseManager({ backend, ttlMs });
    const first = await leases.acquire('again');
    const [lease = 0n] = await leaseIds();
    await first.release();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const beganMs = performance.now();
    const second = await leases.acquire('again');
    const life = await client.lease.timeToLive(lease, { keys: true });
    const tookMs = performance.now() - beganMs;
    assert.deepEqual(await leaseIds(), [lease]);
    assert.equal(life?.keys.length, 1);
    assert.ok(life.remainingMs >= ttlMs - tookMs - roundingMs, `${life.remainingMs} ms are left after ${tookMs}`);
    assert.ok(second.fencingToken > first.fencingToken);
    await second.release();
    while ((await leaseIds()).length > 0) await new Promise((resolve) => setTimeout(resolve, 200));
  });

  test('are not granted anew by one that tries again and again', async () => {
    const backend = etcdBackend({ client });
    await using leases = createLeaseManager({ backend, ttlMs });
    await using _hold = await leases.acquire('held');
    const seen = new Set<bigint>();
    for (let attempt = 0; attempt < 10; attempt++) {
      assert.equal(await leases.tryAcquire('held'), null);
      for (const id of await leaseIds()) seen.add(id);
    }
    assert.ok(seen.size <= 3, `${seen.size} leases for one that holds and one that tries`);
  });

  test('that ended meanwhile are replaced', async () => {
    const backend = etcdBackend({ client });
    await using leases = createLeaseManager({ backend, ttlMs });
    await (await leases.acquire('revoked')).release();
    for (const id of await leaseIds()) await client.lease.revoke(id);
    await using hold = await leases.acquire('revoked');
    await hold.renew();
    assert.ok(hold.isHeld());
  });
});
