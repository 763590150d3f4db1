import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd, makeCertificates } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ClusterMember } from '../cluster/cluster-member.ts';
import { refusedStart } from './refused-start.ts';

describe.skipIf(!hasEtcd()).concurrent('tenure serve on an etcd that it cannot use', () => {
  let etcd: EtcdProcess;

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
  });

  afterAll(() => etcd?.dispose());

  const refused = (prefix: string, ...flags: readonly string[]): Promise<string> =>
    refusedStart({ engine: `etcd://${etcd.endpoint}${prefix}`, flags });

  test('because nothing listens there, or another service does', async () => {
    const web = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => web.once('listening', resolve));
    const { port } = web.address() as AddressInfo;
    // Each start waits for etcd for a while.
    const [silent, other] = await Promise.all([
      refusedStart({ engine: 'etcd://127.0.0.1:1/x' }),
      refusedStart({ engine: `etcd://127.0.0.1:${port}/x` }),
    ]);
    web.close();
    expect(silent).toMatch(/127\.0\.0\.1:1: .*ECONNREFUSED.*--engine/);
    expect(other).toMatch(new RegExp(`127.0.0.1:${port}: .*--engine`));
    expect(await refusedStart({ engine: 'etcd://:x/y' })).toMatch(/address of the etcd engine cannot be used/);
  });

  test('because the prefix has other keys, which stay', async () => {
    etcd.control('put', '/registry/pods/one', 'theirs');
    expect(await refused('/registry')).toMatch(/keys that are not of a Tenure log: give the log a prefix of its own/);
    expect(etcd.control('get', '--prefix', '/registry/', '--print-value-only').trim()).toBe('theirs');
    etcd.control('put', '/git/head', 'ref: refs/heads/main');
    expect(await refused('/git')).toMatch(/\/git\/head holds something that is not Tenure's: give the log a prefix/);
    const outer = await ClusterMember.start({ name: 'a', engine: `etcd://${etcd.endpoint}/outer` });
    await outer.stop();
    expect(await refused('/outer/inner')).toMatch(/lies inside the log .* choose a prefix beside it/);
  });

  test('because the log is of a newer format, of another cluster, or empty', async () => {
    const engine = `etcd://${etcd.endpoint}/other`;
    expect(await refused('/other', '--cluster-id', 'abc')).toMatch(
      /this log is empty, and --cluster-id asks for .* abc/,
    );
    const member = await ClusterMember.start({ name: 'a', engine });
    const { header } = await member.cluster.memberList({});
    await member.stop();
    const other = await refused('/other', '--cluster-id', 'abc');
    expect(other).toContain(`this log belongs to the cluster ${header?.clusterId.toString(16)}`);
    etcd.control('put', '/newer/head', `tenure-head 2 ${'a'.repeat(32)} 1 whatever comes`);
    expect(await refused('/newer')).toMatch(/has format 2, this program reads 1: run the newer Tenure/);
  });

  test('and stops when a newer Tenure takes the log over while it runs', async () => {
    const engine = `etcd://${etcd.endpoint}/upgraded`;
    const members = await Promise.all(['a', 'b'].map((name) => ClusterMember.start({ name, engine })));
    etcd.control('put', '/upgraded/head', `tenure-head 2 ${'a'.repeat(32)} 1 whatever comes`);
    for (const member of members) {
      const { code, err } = await member.process.ended;
      expect(code).toBe(1);
      expect(err).toMatch(/Error: the server stopped: .*has format 2[^\n]*run the newer Tenure\n$/);
    }
  });
});

describe.skipIf(!hasEtcd()).concurrent('tenure serve on an etcd with authentication', () => {
  let etcd: EtcdProcess;

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
    for (const user of ['root:root', 'ada:right', 'bob:right']) etcd.control('user', 'add', user);
    etcd.control('user', 'grant-role', 'root', 'root');
    etcd.control('role', 'add', 'keeper');
    etcd.control('role', 'grant-permission', 'keeper', 'readwrite', '--prefix=true', '/guarded/');
    etcd.control('user', 'grant-role', 'ada', 'keeper');
    etcd.control('auth', 'enable');
  });

  afterAll(() => etcd?.dispose());

  test('because of the user or the password, which it does not print, or missing permissions', async () => {
    const refused = (credentials: string): Promise<string> =>
      refusedStart({ engine: `etcd://${credentials}${etcd.endpoint}/guarded` });
    expect(await refused('')).toMatch(/etcd asks for a user and a password: .*--engine-user.*TENURE_ENGINE_PASSWORD/);
    const message = await refused('ada:wrong-one@');
    expect(message).toMatch(/authentication failed.*give the right user and password/);
    expect(message).not.toContain('wrong-one');
    expect(await refused('bob:right@')).toMatch(/role grant-permission ROLE readwrite \/guarded\/ --prefix=true/);
    const member = await ClusterMember.start({ name: 'a', engine: `etcd://ada:right@${etcd.endpoint}/guarded` });
    await member.put('a', '1');
    await member.stop();
  });

  test('with the user as a flag, and the password in a file or in the environment', async () => {
    const engine = `etcd://${etcd.endpoint}/guarded`;
    const folder = mkdtempSync(join(tmpdir(), 'tenure-starts-'));
    try {
      const file = join(folder, 'password');
      writeFileSync(file, 'right\n');
      const ada = ['--engine-user', 'ada'];
      const wrong = { TENURE_ENGINE_PASSWORD: 'wrong-one' };
      const message = await refusedStart({ engine, flags: ada, env: wrong });
      expect(message).toMatch(/authentication failed.*give the right user and password/);
      expect(message).not.toContain('wrong-one');
      expect(await refusedStart({ engine, flags: ada })).toMatch(/has a name and a password: give --engine-user, and/);
      expect(await refusedStart({ engine, env: wrong })).toMatch(/has a name and a password/);
      const missing = [...ada, '--engine-password-file', join(folder, 'missing')];
      expect(await refusedStart({ engine, flags: missing })).toMatch(/--engine-password-file: ENOENT/);
      const noFile = [...ada, '--engine-password-file', folder];
      expect(await refusedStart({ engine, flags: noFile })).toContain(`--engine-password-file: ${folder} is a folder`);
      // The file takes precedence over the variable, and both over the address.
      const flags = [...ada, '--engine-password-file', file];
      const address = `etcd://bob:wrong@${etcd.endpoint}/guarded`;
      const members = [
        await ClusterMember.start({ name: 'b', engine: address, flags, env: wrong }),
        await ClusterMember.start({ name: 'c', engine, flags: ada, env: { TENURE_ENGINE_PASSWORD: 'right' } }),
      ];
      for (const member of members) await member.put('b', '2');
      for (const member of members) await member.stop();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe.skipIf(!hasEtcd()).concurrent('tenure serve on an etcd behind TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-starts-'));
  const file = (name: string): string => join(folder, name);
  let etcd: EtcdProcess;

  beforeAll(async () => {
    makeCertificates(folder);
    writeFileSync(file('text'), 'no certificate');
    etcd = await EtcdProcess.start(
      `--cert-file=${file('server.crt')}`,
      `--key-file=${file('server.key')}`,
      `--trusted-ca-file=${file('ca.crt')}`,
      '--client-cert-auth',
    );
  });

  afterAll(async () => {
    await etcd?.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  test('because of wrong or missing certificates', async () => {
    const engine = `etcd://${etcd.endpoint}/tls`;
    const authority = ['--engine-cacert', file('ca.crt')];
    const shown = ['--engine-cert', file('client.crt'), '--engine-key', file('client.key')];
    const refused = (...flags: string[]): Promise<string> => refusedStart({ engine, flags });
    const [clear, untrusting, nameless] = await Promise.all([refused(), refused(...shown), refused(...authority)]);
    expect(clear).toMatch(/give --engine-cacert if it asks for TLS/);
    expect(untrusting).toMatch(/certificate.*--engine-cacert/);
    expect(nameless).toMatch(/--engine-cert and --engine-key/);
    expect(await refused(...authority, '--engine-cert', file('client.crt'))).toMatch(/go together: give both/);
    expect(await refused('--engine-cacert', file('missing'))).toMatch(/--engine-cacert: ENOENT.*missing/);
    expect(await refused('--engine-cacert', file('text'))).toMatch(/--engine-cacert: \S+ is no PEM file/);
    const member = await ClusterMember.start({ name: 'a', engine, flags: [...authority, ...shown] });
    await member.put('a', '1');
    await member.stop();
  });
});
