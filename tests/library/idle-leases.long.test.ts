import { createLeaseManager } from 'tenure';
import { EtcdClient, etcdBackend } from 'tenure/etcd';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { etcdServerKinds } from './etcd-servers.ts';
import type { EtcdServer } from './etcd-servers.ts';

/** The test waits for it once. */
const ttlMs = inject('effort') === 'soak' ? 20_000 : 8_000;
/** etcd returns the remaining time in whole seconds. */
const roundingMs = 1000;

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))('idle leases in $name', (kind) => {
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

  test('serve the next entry with its whole TTL, and are revoked when unused', async () => {
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
    expect(await leaseIds()).toStrictEqual([lease]);
    expect(life?.keys.length).toBe(1);
    expect(life?.remainingMs, `after ${tookMs} ms`).toBeGreaterThanOrEqual(ttlMs - tookMs - roundingMs);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
    await second.release();
    while ((await leaseIds()).length > 0) await new Promise((resolve) => setTimeout(resolve, 200));
  });

  test('are reused by a caller that retries in a loop', async () => {
    const backend = etcdBackend({ client });
    await using leases = createLeaseManager({ backend, ttlMs });
    await using _hold = await leases.acquire('held');
    const seen = new Set<bigint>();
    for (let attempt = 0; attempt < 10; attempt++) {
      expect(await leases.tryAcquire('held')).toBe(null);
      for (const id of await leaseIds()) seen.add(id);
    }
    expect(seen.size, `${seen.size} leases for one that holds and one that tries`).toBeLessThanOrEqual(3);
  });

  test('that expired are replaced', async () => {
    const backend = etcdBackend({ client });
    await using leases = createLeaseManager({ backend, ttlMs });
    await (await leases.acquire('revoked')).release();
    for (const id of await leaseIds()) await client.lease.revoke(id);
    await using hold = await leases.acquire('revoked');
    await hold.renew();
    expect(hold.isHeld()).toBe(true);
  });
});
