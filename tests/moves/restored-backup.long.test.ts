import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd, hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Cluster } from '../cluster/cluster.ts';
import { ClusterMember } from '../cluster/cluster-member.ts';
import { runCommand } from '../running-command.ts';
import { refusedStart } from '../starts/refused-start.ts';

const longerLog = { commit: 400, ci: 400, soak: 1_000 }[inject('effort')];

interface Backup {
  readonly engine: string;
  save(): Promise<void>;
  /** Replaces the current content with the older one. */
  restore(): Promise<void>;
}

/**
 * The procedure of the guide for a backup by the database's own tools that is older than the applied state of the
 * servers.
 */
async function checkOlderBackup({ engine, save, restore }: Backup): Promise<void> {
  const cluster = await Cluster.start(['a', 'b', 'c'].map((name) => ({ name, engine })));
  try {
    const member = cluster.members[0] as ClusterMember;
    await member.put('before', '1');
    const { header } = await member.cluster.memberList({});
    await save();
    for (let round = 0; round < 5; round += 1) await member.put('after', `${round}`);
    const { members } = cluster;
    await restore();
    for (const { process } of members) {
      const { code, err } = await process.ended;
      expect(code).toBe(1);
      expect(err).toMatch(/\nError: the server stopped: the log (ends at entry|in etcd|has another entry)[^\n]*\n$/m);
    }

    const fresh = await cluster.join({ name: 'a', engine });
    expect([await fresh.get('before'), await fresh.get('after')]).toEqual(['1', undefined]);
    expect((await fresh.cluster.memberList({})).header?.clusterId).toBe(header?.clusterId);
    await fresh.put('after', 'the restore');
    expect(await refusedStart({ engine, flags: ['--cluster-id', '1'] })).toContain('belongs to the cluster');
  } finally {
    await cluster.stop();
  }
}

describe.concurrent('running servers stop when an older backup is restored, and new servers start from it', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tenure-backup-'));
    // PostgreSQL's programs may run as another user, since they refuse to run as root.
    await chmod(folder, 0o777);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.skipIf(!hasPostgres())('with pg_dump and psql', async () => {
    const database = await PostgresCluster.create();
    const file = join(folder, 'tenure.sql');
    try {
      await checkOlderBackup({
        engine: database.url(),
        async save() {
          await database.client('pg_dump', '--schema', 'tenure', '--file', file, 'postgres');
        },
        async restore() {
          await database.query('DROP SCHEMA tenure CASCADE');
          await database.client('psql', '--quiet', '--set', 'ON_ERROR_STOP=1', '--single-transaction', '--file', file);
        },
      });
    } finally {
      await database.dispose();
    }
  });

  test.skipIf(!hasPostgres())('with a snapshot of Tenure, which makes another cluster', async () => {
    const database = await PostgresCluster.create();
    const schema = ['--engine-schema', 'replaced'];
    const file = join(folder, 'another.snapshot');
    const clusters: Cluster[] = [];
    const start = async (name: string, engine: string, ...flags: string[]): Promise<ClusterMember> => {
      const cluster = await Cluster.start([{ name, engine, flags }]);
      clusters.push(cluster);
      return cluster.members[0] as ClusterMember;
    };
    try {
      const another = await start('one', 'file', '--data-dir', join(folder, 'another'));
      // Its log is longer than that of the servers will be, so that these find theirs trimmed.
      for (let round = 1; round <= longerLog; round += 1) await another.put('key', `${round}`);
      await another.stop();
      expect((await runCommand(['snapshot', 'save', file, '--data-dir', join(folder, 'another')])).code).toBe(0);
      const running = await start('a', database.url(), ...schema);
      await running.put('key', 'of the former cluster');
      const restore = ['snapshot', 'restore', file, '--engine', database.url(), '--engine-schema', 'aside'];
      expect(await runCommand(restore)).toMatchObject({ code: 0 });
      // In one step: a server that saw an empty log would stop because of it.
      await database.query('DROP SCHEMA replaced CASCADE; ALTER SCHEMA aside RENAME TO replaced');
      const { code, err } = await running.process.ended;
      expect(code).toBe(1);
      expect(err).toMatch(/\nError: the server stopped: this log is that of another cluster now[^\n]*\n$/);
      expect(await (await start('a', database.url(), ...schema)).get('key')).toBe(`${longerLog}`);
    } finally {
      for (const cluster of clusters) await cluster.stop();
      await database.dispose();
    }
  });

  test.skipIf(!hasEtcd())('with etcdctl snapshot', async () => {
    const etcd = await EtcdProcess.start();
    const file = join(folder, 'etcd.snapshot');
    try {
      await checkOlderBackup({
        engine: `etcd://${etcd.endpoint}/tenure`,
        save: async () => void etcd.control('snapshot', 'save', file),
        restore: () => etcd.restore(file),
      });
    } finally {
      await etcd.dispose();
    }
  });
});
