import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd, ServeProcess } from '@tenure/test-support';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { makeCertificates } from '../../packages/server/src/engines/etcd/testing/make-certificates.ts';
import { type CommandResult, runCommand } from '../running-command.ts';

describe.skipIf(!hasEtcd())('the command against an etcd behind TLS', { timeout: 60_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-access-'));
  const file = (name: string): string => join(folder, name);
  let etcd: EtcdProcess;
  beforeAll(async () => {
    makeCertificates(folder);
    const flags = [`--cert-file=${file('server.crt')}`, `--key-file=${file('server.key')}`];
    etcd = await EtcdProcess.start(...flags, `--trusted-ca-file=${file('ca.crt')}`, '--client-cert-auth');
  });
  afterAll(async () => {
    await etcd.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const flags = (): string[] => {
    const client = ['--cert', file('client.crt'), '--key', file('client.key')];
    return ['--endpoints', `https://${etcd.endpoint}`, '--cacert', file('ca.crt'), ...client];
  };
  const tenure = (args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> => {
    return runCommand(args, { env });
  };

  test('takes the files of flags, and of the environment', async () => {
    assert.deepEqual(await tenure(['put', 'a', '1', ...flags()]), { code: 0, out: 'OK\n', err: '' });
    const env = {
      TENURE_ENDPOINTS: `https://${etcd.endpoint}`,
      TENURE_CACERT: file('ca.crt'),
      TENURE_CERT: file('client.crt'),
      TENURE_KEY: file('client.key'),
    };
    assert.equal((await tenure(['get', 'a'], env)).out, 'a\n1\n');
    const { code, out } = await new ServeProcess(['lock', 'a', '--', 'echo', 'mine'], env).ended;
    assert.deepEqual([code, out], [0, 'mine\n']);
  });

  test('says what is wrong with them', async () => {
    const stranger = await tenure(['get', 'a', '--endpoints', `https://${etcd.endpoint}`]);
    assert.equal(stranger.code, 3);
    assert.match(stranger.err, /^Error: cannot connect to .*certificate/);
    const missing = await tenure(['get', 'a', '--cacert', file('nosuch')]);
    assert.equal(missing.code, 1);
    assert.match(missing.err, /^Error: --cacert: ENOENT/);
  });

  test('logs in as the user that it is given', async () => {
    const server = await EtcdProcess.start();
    try {
      server.control('user', 'add', 'root:secret');
      server.control('user', 'grant-role', 'root', 'root');
      server.control('auth', 'enable');
      const args = ['put', 'a', '1', '--endpoints', server.endpoint];
      const nobody = await tenure(args);
      assert.equal(nobody.code, 1);
      assert.match(nobody.err, /^Error: etcdserver: user name is empty \(give --user, .*TENURE_PASSWORD\)\n$/);
      const user = { TENURE_USER: 'root', TENURE_PASSWORD: 'secret' };
      assert.equal((await tenure(args, user)).out, 'OK\n');
      const wrong = await tenure([...args, '--user', 'root'], { TENURE_PASSWORD: 'guess' });
      assert.equal(wrong.code, 1);
      assert.match(wrong.err, /^Error: etcdserver: authentication failed, .* \(see --user and TENURE_PASSWORD\)\n$/);
    } finally {
      await server.dispose();
    }
  });
});
