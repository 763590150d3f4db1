import { join } from 'node:path';
import { EtcdProcess, hasEtcd, hasPostgres, PostgresCluster } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { WatchStream } from '../../conformance/client/watch-stream.ts';
import { Cluster, eventually } from '../cluster/cluster.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { runCommand } from '../running-command.ts';
import { ServeSandbox } from '../serve-sandbox.ts';
import { abandonedLease, checkMembers, contentOf, fill, keptLease } from './moved-content.ts';

const abandonedTtlMs = 8_000;
/** A third of it is long enough to save a snapshot, also on a busy machine. */
const heldTtlMs = 9_000;
/** Events of the content from revision 5 on. */
const eventCount = 8;

describe.skipIf(!hasPostgres() || !hasEtcd()).concurrent('moving a log', () => {
  const sandbox = new ServeSandbox();
  let database: PostgresCluster;
  let etcd: EtcdProcess;
  const clusters: Cluster[] = [];

  beforeAll(async () => {
    [database, etcd] = await Promise.all([PostgresCluster.create(), EtcdProcess.start()]);
  });

  afterAll(async () => {
    for (const cluster of clusters) await cluster.stop();
    await sandbox.remove();
    await database?.dispose();
    await etcd?.dispose();
  });

  async function start(names: readonly string[], engine: string, ...flags: readonly string[]): Promise<Cluster> {
    const cluster = await Cluster.start(names.map((name) => ({ name, engine, flags })));
    clusters.push(cluster);
    return cluster;
  }

  async function move(from: readonly string[], to: readonly string[]): Promise<void> {
    const file = join(sandbox.root, 'moved.snapshot');
    expect(await runCommand(['snapshot', 'save', file, ...from])).toMatchObject({ code: 0, err: '' });
    const restored = await runCommand(['snapshot', 'restore', file, ...to]);
    expect(restored).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/as cluster [0-9a-f]+\n/) });
  }

  /** Stops the servers one by one, so that leadership is transferred. */
  async function stop(cluster: Cluster): Promise<void> {
    for (const member of cluster.members) await member.stop();
  }

  test('from a folder to PostgreSQL, to etcd and back to a folder loses nothing', async () => {
    const [first, last] = [sandbox.newFolder(), sandbox.newFolder()];
    const places = [
      { names: ['alone'], serve: ['file', '--data-dir', first], place: ['--data-dir', first] },
      { names: ['p1', 'p2'], serve: [database.url()], place: ['--engine', database.url()] },
      { names: ['e1', 'e2'], serve: [`etcd://${etcd.endpoint}/m`], place: ['--engine', `etcd://${etcd.endpoint}/m`] },
      { names: ['alone'], serve: ['file', '--data-dir', last], place: ['--data-dir', last] },
    ] as const;

    let cluster = await start(places[0].names, ...(places[0].serve as readonly [string, ...string[]]));
    let member = cluster.members[0] as ClusterMember;
    const revision = await fill(member);
    const sentMs = performance.now();
    await member.lease.leaseGrant({ ID: abandonedLease, TTLMs: BigInt(abandonedTtlMs) });
    await member.kv.put({ key: Buffer.from('abandoned'), lease: abandonedLease });
    const content = await contentOf(member, revision, eventCount);
    const clusterIds = [await checkMembers(member, places[0].names)];
    let epoch = (await member.leadership()).epoch;

    for (const [at, { names, serve, place }] of places.entries()) {
      if (at === 0) continue;
      await stop(cluster);
      await move(places[at - 1]?.place ?? [], place);
      cluster = await start(names, ...(serve as readonly [string, ...string[]]));
      member = cluster.members.at(-1) as ClusterMember;
      expect(await contentOf(member, revision, eventCount)).toEqual(content);
      clusterIds.push(await checkMembers(member, names));
      const before = epoch;
      epoch = (await member.leadership()).epoch;
      expect(epoch).toBeGreaterThan(before);
      const stream = new KeepAliveStream(member.client);
      expect((await stream.renew(keptLease)).TTL).toBe(30n);
      stream.close();
      const abandoned = await member.get('abandoned');
      if (abandoned === undefined) expect(performance.now() - sentMs).toBeGreaterThan(abandonedTtlMs);
      expect((await member.kv.range({ key: Buffer.from('held/1') })).header?.revision).toBeGreaterThanOrEqual(revision);
    }
    expect(new Set(clusterIds).size).toBe(places.length);

    await eventually('the abandoned lease expires', async () =>
      (await member.get('abandoned')) === undefined ? true : undefined,
    );
    expect(performance.now() - sentMs).toBeGreaterThan(abandonedTtlMs);
    expect((await member.lease.leaseLeases({})).leases.map(({ ID }) => ID)).toEqual([keptLease]);
    const watch = new WatchStream(member.client);
    const refused = await watch.create({ key: Buffer.from('counter'), startRevision: 3n });
    const { compactRevision } = refused.canceled ? refused : await watch.canceled(refused.watchId);
    expect(compactRevision).toBe(4n);
    watch.close();
  });

  test('onto an existing log, or from a log in use, is refused', async () => {
    const url = database.url();
    const schema = ['--engine-schema', 'used'];
    const place = ['--engine', url, ...schema];
    const cluster = await start(['used'], url, ...schema);
    const member = cluster.members[0] as ClusterMember;
    await member.put('a', '1');
    const file = join(sandbox.root, 'used.snapshot');
    const saved = await runCommand(['snapshot', 'save', file, ...place]);
    expect(saved).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^Error: servers append .* stop them all first.*\n$/),
    });
    expect((await runCommand(['snapshot', 'save', file, '--endpoints', member.address])).code).toBe(0);
    const restored = await runCommand(['snapshot', 'restore', file, ...place]);
    expect(restored).toMatchObject({ code: 1, out: '' });
    expect(restored.err).toMatch(
      /^Error: .*holds the log of a cluster already.*--engine-schema.*DROP SCHEMA used CASCADE\n$/,
    );

    const prefix = ['--engine', `etcd://${etcd.endpoint}/used`];
    expect((await runCommand(['snapshot', 'restore', file, ...prefix])).code).toBe(0);
    const again = await runCommand(['snapshot', 'restore', file, ...prefix]);
    expect(again.err).toMatch(/^Error: .*holds the log of a cluster already.*etcdctl del --prefix \/used\/\n$/);
    expect(await member.get('a')).toBe('1');
  });

  test('from a missing log is refused, and creates nothing', async () => {
    const file = join(sandbox.root, 'nothing.snapshot');
    const save = (...place: string[]): Promise<object> => runCommand(['snapshot', 'save', file, ...place]);
    const refused = (text: string): object => ({ code: 1, out: '', err: expect.stringContaining(text) });
    const schemaless = ['--engine', database.url(), '--engine-schema', 'missing'];
    expect(await save(...schemaless)).toMatchObject(refused('no log of Tenure in the schema missing'));
    expect(await database.query(`SELECT FROM pg_namespace WHERE nspname = 'missing'`)).toEqual([]);
    const engine = `etcd://${etcd.endpoint}/missing`;
    expect(await save('--engine', engine)).toMatchObject(refused('no log of Tenure under /missing/'));
    expect(etcd.control('get', '--prefix', '/missing/')).toBe('');
    expect(await save('--data-dir', sandbox.newFolder())).toMatchObject(refused('holds no log'));
    const both = ['snapshot', 'restore', file, '--data-dir', 'x', '--engine', engine];
    expect(await runCommand(both)).toMatchObject({ code: 2, err: expect.stringContaining('give one of them') });
    expect(await runCommand(['snapshot', 'restore', file])).toMatchObject({ code: 2 });
    const wrong = ['snapshot', 'restore', file, '--engine', 'mysql://x'];
    expect(await runCommand(wrong)).toMatchObject({ code: 2, err: expect.stringContaining('postgres://user@host') });
  });

  test('while a server runs gives every lease its whole TTL again, since later renewals count', async () => {
    const folder = sandbox.newFolder();
    const cluster = await start(['alone'], 'file', '--data-dir', folder);
    const member = cluster.members[0] as ClusterMember;
    await member.lease.leaseGrant({ ID: keptLease, TTLMs: BigInt(heldTtlMs) });
    await member.kv.put({ key: Buffer.from('held'), lease: keptLease });
    // After two thirds of its TTL without a renewal, its deadline is checkpointed in the log and in the snapshot.
    await eventually('the lease has at most a third left', async () => {
      const { TTLMs } = await member.lease.leaseTimeToLive({ ID: keptLease });
      return TTLMs < heldTtlMs / 3 ? true : undefined;
    });
    const file = join(sandbox.root, 'running.snapshot');
    expect((await runCommand(['snapshot', 'save', file, '--endpoints', member.address])).code).toBe(0);
    const stream = new KeepAliveStream(member.client);
    expect((await stream.renew(keptLease)).TTL).toBe(BigInt(heldTtlMs / 1_000));
    await stop(cluster);

    const place = ['--engine', database.url(), '--engine-schema', 'running'];
    expect((await runCommand(['snapshot', 'restore', file, ...place])).code).toBe(0);
    // After the renewal, and before the claim from which the TTL runs.
    const restoredMs = performance.now();
    const moved = await start(['s1'], database.url(), '--engine-schema', 'running');
    const holder = moved.members[0] as ClusterMember;
    const watch = new WatchStream(holder.client);
    const { watchId } = await watch.create({ key: Buffer.from('held'), startRevision: 2n });
    await watch.events(watchId, 2);
    expect(performance.now() - restoredMs).toBeGreaterThan(heldTtlMs);
    watch.close();
  });
});
