import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd, makeCertificates, ServeProcess } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

  test('reads the files named by flags and by the environment', async () => {
    expect(await tenure(['put', 'a', '1', ...flags()])).toEqual({ code: 0, out: 'OK\n', err: '' });
    const env = {
      TENURE_ENDPOINTS: `https://${etcd.endpoint}`,
      TENURE_CACERT: file('ca.crt'),
      TENURE_CERT: file('client.crt'),
      TENURE_KEY: file('client.key'),
    };
    expect((await tenure(['get', 'a'], env)).out).toBe('a\n1\n');
    const { code, out } = await new ServeProcess(['lock', 'a', '--', 'echo', 'mine'], env).ended;
    expect([code, out]).toEqual([0, 'mine\n']);
  });

  test('reports errors of these files', async () => {
    const stranger = await tenure(['get', 'a', '--endpoints', `https://${etcd.endpoint}`]);
    expect(stranger.code).toBe(3);
    expect(stranger.err).toMatch(/^Error: cannot connect to .*certificate/);
    const missing = await tenure(['get', 'a', '--cacert', file('nosuch')]);
    expect(missing.code).toBe(1);
    expect(missing.err).toMatch(/^Error: --cacert: ENOENT/);
  });

  test('logs in as the given user', async () => {
    const server = await EtcdProcess.start();
    try {
      server.control('user', 'add', 'root:secret');
      server.control('user', 'grant-role', 'root', 'root');
      server.control('auth', 'enable');
      const args = ['put', 'a', '1', '--endpoints', server.endpoint];
      const anonymous = await tenure(args);
      expect(anonymous.code).toBe(1);
      expect(anonymous.err).toMatch(/^Error: etcdserver: user name is empty \(give --user, .*TENURE_PASSWORD\)\n$/);
      const user = { TENURE_USER: 'root', TENURE_PASSWORD: 'secret' };
      expect((await tenure(args, user)).out).toBe('OK\n');
      const wrong = await tenure([...args, '--user', 'root'], { TENURE_PASSWORD: 'guess' });
      expect(wrong.code).toBe(1);
      expect(wrong.err).toMatch(/^Error: etcdserver: authentication failed, .* \(see --user and TENURE_PASSWORD\)\n$/);
    } finally {
      await server.dispose();
    }
  });
});
