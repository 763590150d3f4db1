import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd, makeCertificates } from '@tenure/test-support';
import { createLeaseManager } from 'tenure';
import { EtcdClient, etcdBackend } from 'tenure/etcd';
import { describe, expect, test } from 'vitest';

const timeoutMs = 2000;

describe.skipIf(!hasEtcd())('the client of an etcd with authentication', () => {
  test('logs in with a user and a password, renews its token, and reports what to do', async () => {
    const etcd = await EtcdProcess.start();
    try {
      for (const name of ['root', 'ada']) etcd.control('user', 'add', `${name}:secret`);
      etcd.control('user', 'grant-role', 'root', 'root');
      etcd.control('role', 'add', 'leases');
      etcd.control('role', 'grant-permission', 'leases', 'readwrite', '--prefix=true', 'tenure/');
      etcd.control('user', 'grant-role', 'ada', 'leases');
      etcd.control('auth', 'enable');
      const options = { endpoints: etcd.endpoint, timeoutMs: 10_000 };
      await using client = new EtcdClient({ ...options, user: 'ada', password: 'secret' });
      await using leases = createLeaseManager({ backend: etcdBackend({ client }), ttlMs: 30_000 });
      await using hold = await leases.acquire('nightly');
      expect(hold.isHeld()).toBe(true);
      await expect(client.kv.put('elsewhere', '')).rejects.toMatchObject({ details: 'etcdserver: permission denied' });
      // After a restart the token is unknown: the call was refused, so it can be repeated with a new token.
      await etcd.kill();
      await etcd.start();
      await client.kv.get('tenure/').catch(() => undefined);
      expect((await leases.inspect('nightly'))?.fencingToken).toBe(hold.fencingToken);
      await using wrong = new EtcdClient({ ...options, timeoutMs, user: 'ada', password: 'wrong' });
      const refused = createLeaseManager({ backend: etcdBackend({ client: wrong }) }).acquire('nightly');
      await expect(refused).rejects.toMatchObject({
        backendCode: 'misconfigured',
        message: expect.stringMatching(/give the right user and password/),
      });
      await using anonymous = new EtcdClient({ ...options, timeoutMs });
      const unnamed = createLeaseManager({ backend: etcdBackend({ client: anonymous }) }).acquire('nightly');
      await expect(unnamed).rejects.toMatchObject({
        backendCode: 'misconfigured',
        message: expect.stringMatching(/give both/),
      });
    } finally {
      await etcd.dispose();
    }
  });

  test('connects over TLS only with the right authority and certificate', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-tls-'));
    const { ca, cert, key } = makeCertificates(folder);
    const etcd = await EtcdProcess.start(
      `--cert-file=${join(folder, 'server.crt')}`,
      `--key-file=${join(folder, 'server.key')}`,
      `--trusted-ca-file=${join(folder, 'ca.crt')}`,
      '--client-cert-auth',
    );
    try {
      await using client = new EtcdClient({ endpoints: `https://${etcd.endpoint}`, tls: { ca, cert, key } });
      await client.kv.put('a', 'b');
      expect((await client.kv.getOne('a'))?.value).toBe('b');
      // Each retries until its time is up.
      const refused = [{ cert, key }, { ca }, undefined].map(async (tls) => {
        await using other = new EtcdClient({ endpoints: etcd.endpoint, timeoutMs, ...(tls && { tls }) });
        await expect(other.kv.get('a')).rejects.toMatchObject({ name: 'EtcdError', etcdCode: 'unreachable' });
      });
      await Promise.all(refused);
    } finally {
      await etcd.dispose();
      rmSync(folder, { recursive: true });
    }
  });
});
