import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { etcdProgram, hasEtcd, hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterEach, describe, expect, test } from 'vitest';
import { refusalOf } from '../../conformance/client/refusal.ts';
import { Cluster } from '../cluster/cluster.ts';
import { ClusterMember, type MemberOptions } from '../cluster/cluster-member.ts';
import { runCommand } from '../running-command.ts';
import { texts } from './access-judge.ts';
import { AnonymousConnections } from './anonymous-access.ts';
import { RootAccess, rootPassword } from './root-access.ts';
import { authOf, expectSameAuth } from './same-auth.ts';

const names = ['s1', 's2', 's3'];
/** Entries between two snapshots. */
const snapshotCount = 50;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Started {
  readonly database: PostgresDatabase;
  readonly root: RootAccess;
  readonly cluster: Cluster;
  readonly options: (name: string) => MemberOptions;
  readonly folder: string;
}

/** Three servers with authentication, and the user ann. */
async function start(flagsIn: (folder: string) => readonly string[] = () => []): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-auth-'));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const database = await PostgresDatabase.create();
  cleanups.push(() => database.dispose());
  let servers = (): readonly ClusterMember[] => [];
  const root = new RootAccess(
    () => servers(),
    () => 0,
  );
  const flags = flagsIn(folder);
  const options = (name: string): MemberOptions => ({ name, engine: database.url(), metadata: root.metadata, flags });
  const cluster = await Cluster.start(names.map(options));
  cleanups.push(() => cluster.stop());
  servers = () => cluster.members;
  await root.enable();
  await root.addUser('ann', 'of ann');
  return { database, root, cluster, options, folder };
}

async function restartAll({ cluster, options, root }: Started): Promise<void> {
  await cluster.stop();
  await Promise.all(names.map((name) => cluster.join(options(name))));
  await root.logIn();
  await cluster.leader();
}

describe.skipIf(!hasPostgres())('users, roles and permissions', { timeout: 180_000 }, () => {
  test('survive snapshots of a trimmed log, restarts of all servers, and moves to other engines', async () => {
    const started = await start(() => ['--snapshot-count', `${snapshotCount}`]);
    const { cluster, database, options, root, folder } = started;
    const before = await authOf(root.any);
    const [out] = (await cluster.followers()) as [ClusterMember];
    const reached = Number((await out.maintenance.status({})).raftAppliedIndex);
    await out.stop('SIGKILL');
    for (let oldest = 0; oldest <= reached;) {
      for (let at = 0; at < snapshotCount; at += 1) await root.any.put('key', `${at}`);
      const [row] = await database.query('SELECT min(index) AS oldest FROM tenure.entries');
      oldest = Number(row?.['oldest']);
    }
    const back = await cluster.join(options(out.name));
    await root.logIn(back);
    expect(await authOf(back)).toEqual(before);
    await restartAll(started);
    await expectSameAuth(cluster);
    expect(await authOf(root.any)).toEqual(before);

    const file = join(folder, 'saved.snapshot');
    const env = { TENURE_PASSWORD: rootPassword };
    const save = ['snapshot', 'save', file, '--endpoints', root.any.address];
    expect(await runCommand([...save, '--user', 'ann'], { env: { TENURE_PASSWORD: 'of ann' } })).not.toMatchObject({
      code: 0,
    });
    expect(await runCommand([...save, '--user', 'root'], { env })).toMatchObject({ code: 0 });
    const again = join(folder, 'again.snapshot');
    const dataDir = join(folder, 'data');
    const place = ['--engine', database.url(), '--engine-schema', 'moved'];
    for (const command of [
      ['restore', file, '--data-dir', dataDir],
      ['save', again, '--data-dir', dataDir],
      ['restore', again, ...place],
    ]) {
      expect(await runCommand(['snapshot', ...command])).toMatchObject({ code: 0 });
    }
    for (const [engine, ...flags] of [
      ['file', '--data-dir', dataDir],
      [database.url(), ...place.slice(2)],
    ]) {
      const metadata: { token?: string } = {};
      const moved = await ClusterMember.start({ name: 'moved', engine: engine as string, flags, metadata });
      cleanups.push(() => moved.stop('SIGKILL'));
      expect(await refusalOf(moved.get('key'))).toMatchObject({ details: texts.empty });
      metadata.token = (await moved.auth.authenticate({ name: 'ann', password: 'of ann' })).token;
      await moved.put('ann/key', 'hers');
      expect(await refusalOf(moved.get('key'))).toMatchObject({ details: texts.denied });
      metadata.token = (await moved.auth.authenticate({ name: 'root', password: rootPassword })).token;
      expect(await authOf(moved)).toEqual(before);
    }
  });
});

describe.skipIf(!hasPostgres())('tokens', { timeout: 180_000 }, () => {
  test('of one server are known to the others at once, and forgotten by one that was killed', async () => {
    const { cluster, options, root } = await start();
    const connections = new AnonymousConnections();
    cleanups.push(() => connections.close());
    const put = (member: ClusterMember, token: string): Promise<unknown> =>
      connections.to(member).kv.put({ key: Buffer.from('ann/key') }, { metadata: { token } });
    const login = { name: 'ann', password: 'of ann' };
    let last = '';
    for (let round = 0; round < 6; round += 1) {
      const { members } = cluster;
      last = (await connections.to(members[round % 3] as ClusterMember).auth.authenticate(login)).token;
      await Promise.all(members.map((member) => put(member, last)));
    }
    const old = await cluster.leader();
    await old.stop('SIGKILL');
    for (const member of cluster.members) await root.persist(() => put(member, last));
    const back = await cluster.join(options(old.name));
    const outcome = await put(back, last).then(
      () => 'known',
      (error: { details: string }) => error.details,
    );
    expect(['known', texts.invalid]).toContain(outcome);
    const { token } = await connections.to(back).auth.authenticate(login);
    await Promise.all(cluster.members.map((member) => put(member, token)));
  });

  test('that are signed stay valid when all servers are killed', async () => {
    const started = await start((folder) => {
      const file = join(folder, 'secret');
      writeFileSync(file, 'a secret of thirty-two bytes or more');
      return ['--auth-token', `jwt,priv-key=${file},sign-method=HS256,ttl=10m`];
    });
    const { cluster, root } = started;
    const connections = new AnonymousConnections();
    cleanups.push(() => connections.close());
    const { token } = await root.any.auth.authenticate({ name: 'ann', password: 'of ann' });
    await restartAll(started);
    for (const member of cluster.members) {
      const { kv } = connections.to(member);
      await kv.put({ key: Buffer.from('ann/key') }, { metadata: { token } });
      const elsewhere = kv.put({ key: Buffer.from('bob/key') }, { metadata: { token } });
      expect(await refusalOf(elsewhere)).toMatchObject({ details: texts.denied });
    }
  });

  test.skipIf(!hasEtcd())('are what etcdctl gets with --user, from every server', async () => {
    const started = await start();
    const program = etcdProgram.includes('/') ? join(dirname(etcdProgram), 'etcdctl') : 'etcdctl';
    const etcdctl = (...args: string[]): Promise<string> =>
      new Promise((resolve) => {
        const endpoints = started.cluster.members.map(({ address }) => address).join(',');
        const env = { ...process.env, ETCDCTL_API: '3' };
        execFile(
          program,
          ['--endpoints', endpoints, '--command-timeout=60s', '--dial-timeout=30s', ...args],
          { env },
          (error, out, err) => {
            resolve(error === null ? out.trim() : err.trim());
          },
        );
      });
    const ann = ['--user', 'ann:of ann'];
    for (const round of ['before', 'after']) {
      expect(await etcdctl(...ann, 'put', 'ann/key', round)).toBe('OK');
      expect(await etcdctl(...ann, 'get', 'ann/key')).toBe(`ann/key\n${round}`);
      expect(await etcdctl(...ann, 'get', 'other')).toContain(texts.denied);
      expect(await etcdctl('get', 'ann/key')).toContain(texts.empty);
      expect(await etcdctl('--user', `root:${rootPassword}`, 'user', 'list')).toBe('ann\nroot');
      expect(await etcdctl('--user', `root:${rootPassword}`, 'role', 'get', 'ann')).toContain('[ann/, ann0)');
      await restartAll(started);
    }
  });
});
