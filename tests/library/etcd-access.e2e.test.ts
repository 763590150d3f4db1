import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd } from '@tenure/test-support';
import { createLeaseManager } from 'tenure';
import { EtcdClient, etcdBackend } from 'tenure/etcd';
import { describe, test } from 'vitest';
import { makeCertificates } from '../../packages/server/src/engines/etcd/testing/make-certificates.ts';

const timeoutMs = 2000;

describe.skipIf(!hasEtcd())('the client of an etcd that asks who one is', () => {
  test('has a user and a password, renews its token, and says what is wrong', async () => {
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
      assert.ok(hold.isHeld());
      await assert.rejects(client.kv.put('elsewhere', ''), { details: 'etcdserver: permission denied' });
      // After a restart the token is unknown: the call was refused, so it may be made again with a new one.
      await etcd.kill();
      await etcd.start();
      await client.kv.get('tenure/').catch(() => undefined);
      assert.equal((await leases.inspect('nightly'))?.fencingToken, hold.fencingToken);
      await using wrong = new EtcdClient({ ...options, timeoutMs, user: 'ada', password: 'wrong' });
      const refused = createLeaseManager({ backend: etcdBackend({ client: wrong }) }).acquire('nightly');
      await assert.rejects(refused, { backendCode: 'misconfigured', message: /give the right user and password/ });
      await using nobody = new EtcdClient({ ...options, timeoutMs });
      const unnamed = createLeaseManager({ backend: etcdBackend({ client: nobody }) }).acquire('nightly');
      await assert.rejects(unnamed, { backendCode: 'misconfigured', message: /give both/ });
    } finally {
      await etcd.dispose();
    }
  });

  test('speaks TLS with the right authority and certificate, and with nothing less', async () => {
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
      assert.equal((await client.kv.getOne('a'))?.value, 'b');
      // Each tries again until its time is up.
      const refused = [{ cert, key }, { ca }, undefined].map(async (tls) => {
        await using other = new EtcdClient({ endpoints: etcd.endpoint, timeoutMs, ...(tls && { tls }) });
        await assert.rejects(other.kv.get('a'), { name: 'EtcdError', etcdCode: 'unreachable' });
      });
      await Promise.all(refused);
    } finally {
      await etcd.dispose();
      rmSync(folder, { recursive: true });
    }
  });
});
