import { hasPatroni, hasPostgres, type PatroniNode, patroniLeaderKey, PostgresCluster } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Cluster, eventually } from '../cluster/cluster.ts';
import { LastingWatch, type SeenEvent } from '../cluster/lasting-watch.ts';
import { PatroniPair } from './patroni-pair.ts';

const ttlSeconds = 20;
/** Patroni starts a database from a copy of the primary, which takes seconds on a busy machine. */
const patienceMs = 180_000;
/** How long nothing happens, and the key must stay. */
const quietMs = { commit: 10_000, ci: 60_000, soak: 600_000 }[inject('effort')];
const names = ['s1', 's2', 's3'];

/**
 * Patroni, a foreign program that uses etcd's JSON gateway, with its leader key on three servers. It
 * keeps one primary as long as that key is neither lost nor held twice.
 */
describe.skipIf(!hasPatroni() || !hasPostgres()).sequential('two PostgreSQL servers under Patroni', () => {
  let engine: PostgresCluster;
  let cluster: Cluster;
  let watch: LastingWatch;
  let pair: PatroniPair;

  beforeAll(async () => {
    engine = await PostgresCluster.create();
    cluster = await Cluster.start(names.map((name) => ({ name, engine: engine.url() })));
    watch = new LastingWatch(() => cluster.members, 0);
    pair = await PatroniPair.create({ stores: cluster.members.map(({ address }) => address), ttlSeconds });
  });
  afterAll(async () => {
    await pair?.stop();
    watch?.stop();
    await cluster?.stop();
    await engine?.dispose();
  });

  /** What the key of the primary has gone through since an event of the watch. */
  const leaderEvents = (from: number): SeenEvent[] =>
    watch.events.slice(from).filter(({ key }) => key === patroniLeaderKey);
  /** The key still has the name of that node, and was neither deleted nor given to another one since `from`. */
  const expectKept = (primary: PatroniNode, from: number): void => {
    for (const { value } of leaderEvents(from)) expect(value).toBe(primary.name);
  };

  test('agree on a primary, and the other one follows it', async () => {
    const primary = await pair.primary(patienceMs);
    await pair.standbyStreams(patienceMs);
    expect((await watch.seen(({ key }) => key === patroniLeaderKey)).value).toBe(primary.name);
    await primary.query('CREATE TABLE written (value integer)');
    await pair.writesArrive(patienceMs);
  });

  test('change places at a switchover', async () => {
    const [primary, standby] = await pair.roles(patienceMs);
    const from = watch.events.at(-1)?.revision ?? 0;
    await primary.switchover(primary.name, standby.name);
    await watch.seen(({ key, value, revision }) => {
      return key === patroniLeaderKey && value === standby.name && revision > from;
    }, patienceMs);
    expect(await pair.primary(patienceMs)).toBe(standby);
    await pair.standbyStreams(patienceMs);
    await pair.writesArrive(patienceMs);
  });

  test('keep their primary when the leader of the servers is killed', async () => {
    const [primary] = await pair.roles(patienceMs);
    const from = watch.events.length;
    const leader = await cluster.leader();
    const { epoch } = await leader.leadership();
    await leader.stop('SIGKILL');
    const next = await cluster.leader(cluster.members, epoch);
    // Longer than the lease of the key: it was renewed through the servers that are left.
    await new Promise((resolve) => setTimeout(resolve, ttlSeconds * 1_250));
    await pair.writesArrive(patienceMs);
    expectKept(primary, from);
    expect(await next.get(patroniLeaderKey)).toBe(primary.name);
    await cluster.join({ name: leader.name, engine: engine.url(), listen: leader.address });
  });

  test('have a new primary when theirs is killed, which comes back as the standby', async () => {
    const [primary, standby] = await pair.roles(patienceMs);
    const from = watch.events.length;
    await primary.kill();
    await eventually(
      'the standby is the primary',
      async () => {
        return (await standby.state()).role === 'master' ? true : undefined;
      },
      patienceMs,
    );
    const held = leaderEvents(from).map(({ value }) => value);
    // The lease ended, and only then the other node took the key.
    expect(held.filter((value, at) => at === 0 || value !== held[at - 1])).toEqual([undefined, standby.name]);
    primary.start();
    await pair.standbyStreams(patienceMs);
    await pair.writesArrive(patienceMs);
  });

  test('never lose the key while nothing happens', async () => {
    const [primary] = await pair.roles(patienceMs);
    const from = watch.events.length;
    const untilMs = performance.now() + quietMs;
    while (performance.now() < untilMs) {
      await pair.writesArrive(patienceMs);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    expectKept(primary, from);
    expect((await pair.roles(patienceMs))[0]).toBe(primary);
  });
});
