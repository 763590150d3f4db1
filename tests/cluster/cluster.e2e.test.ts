import { hasPostgres, PostgresDatabase } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { AbandonedLeases } from './abandoned-leases.ts';
import { ClusterLoad } from './cluster-load.ts';
import { Cluster } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { LastingWatch } from './lasting-watch.ts';
import { StallMeter } from './stall-meter.ts';

/** The TTL of leases that are renewed: long, for a busy machine. */
const keptTtlMs = 5_000;
const abandonedTtlMs = 2_000;
const isSoak = inject('effort') === 'soak';
const rounds = isSoak ? 60 : 30;
const leases = isSoak ? 100 : 60;

describe.skipIf(!hasPostgres())('three servers on PostgreSQL', { timeout: 180_000 }, () => {
  let database: PostgresDatabase;
  let cluster: Cluster;

  beforeAll(async () => {
    database = await PostgresDatabase.create();
    cluster = await Cluster.start(['s1', 's2', 's3'].map((name) => ({ name, engine: database.url() })));
  });

  afterAll(async () => {
    await cluster?.stop();
    await database?.dispose();
  });

  test('are one store, through each of them', async () => {
    const { members } = cluster;
    const watches = members.map((_, at) => new LastingWatch(() => members, at));
    let revision = 0;
    for (let round = 0; round < 30; round += 1) {
      const writer = members[round % 3] as ClusterMember;
      const reader = members[(round + 1 + (round % 2)) % 3] as ClusterMember;
      const written = await writer.put(`key/${round % 5}`, `value-${round}`);
      expect(written).toBeGreaterThan(revision);
      const { kvs, header } = await reader.kv.range({ key: Buffer.from(`key/${round % 5}`) });
      expect(Buffer.from(kvs[0]?.value ?? []).toString()).toBe(`value-${round}`);
      revision = Number(header?.revision);
      expect(revision).toBeGreaterThanOrEqual(written);
    }
    for (const watch of watches) await watch.seen((event) => event.revision === revision);
    for (const watch of watches) {
      watch.check([]);
      expect(watch.events.map(({ value }) => value)).toEqual(Array.from({ length: 30 }, (_, at) => `value-${at}`));
      watch.stop();
    }
    await cluster.checkSameState();
  });

  test('are listed as members, and agree on the leader', async () => {
    const leader = await cluster.leader();
    const { members } = await leader.cluster.memberList({});
    expect(members.map(({ name }) => name).sort()).toEqual(['s1', 's2', 's3']);
    expect(members.map(({ clientURLs }) => clientURLs[0]).sort()).toEqual(
      cluster.members.map(({ address }) => `http://${address}`).sort(),
    );
  });

  test('know at once which leases another server has granted or revoked', async () => {
    const { members } = cluster;
    const streams = members.map(({ client }) => new KeepAliveStream(client));
    let revision = 0n;
    for (let round = 0; round < rounds; round += 1) {
      const id = BigInt(7_000 + round);
      const granting = members[round % 3] as ClusterMember;
      const { header } = await granting.lease.leaseGrant({ ID: id, TTLMs: 60_000n });
      expect(header?.revision).toBeGreaterThanOrEqual(revision);
      for (const stream of streams) {
        const renewed = await stream.renew(id);
        expect(renewed.TTL).toBe(60n);
        expect(renewed.header?.revision).toBeGreaterThanOrEqual(revision);
      }
      const key = Buffer.from(`leased/${round}`);
      const attaching = members[(round + 1) % 3] as ClusterMember;
      revision = (await attaching.kv.put({ key, lease: id })).header?.revision ?? 0n;
      const revoking = members[(round + 2) % 3] as ClusterMember;
      const revoked = await revoking.lease.leaseRevoke({ ID: id });
      expect(revoked.header?.revision).toBeGreaterThan(revision);
      revision = revoked.header?.revision ?? 0n;
      for (const stream of streams) {
        const refused = await stream.renew(id);
        expect(refused.TTL).toBe(0n);
        expect(refused.header?.revision).toBeGreaterThanOrEqual(revision);
      }
      expect((await granting.kv.range({ key })).kvs).toEqual([]);
    }
    for (const stream of streams) stream.close();
  });

  test('keep every renewed lease, and expire every other in time, when the leader is killed', async () => {
    const load = await ClusterLoad.start(cluster, 1, { keptLeases: leases, keptTtlMs });
    const abandoned = new AbandonedLeases(abandonedTtlMs);
    await abandoned.abandon(cluster.members, leases, 200_000n);
    const stalls = new StallMeter(() => cluster.pids);
    const old = await cluster.leader();
    const { epoch } = await old.leadership();
    await old.stop('SIGKILL');
    const leader = await cluster.leader();
    expect((await leader.leadership()).epoch).toBeGreaterThan(epoch);
    await abandoned.check(
      load.watchOf(leader),
      (fromMs, toMs) => (abandonedTtlMs * 5) / 3 + 3_000 + stalls.between(fromMs, toMs),
    );
    stalls.stop();
    const back = await cluster.join({ name: old.name, engine: database.url() });
    expect((await back.cluster.memberList({})).members).toHaveLength(3);
    await load.finish();
  });

  test('refuse a server with the name of one of them', async () => {
    const seconds = cluster.members.map(({ name }) => cluster.join({ name, engine: database.url() }));
    for (const outcome of await Promise.allSettled(seconds)) {
      expect(outcome).toMatchObject({ status: 'rejected' });
      expect(String((outcome as PromiseRejectedResult).reason)).toContain('a server of the same name is running');
    }
    expect(cluster.members).toHaveLength(3);
    await cluster.leader();
  });

  test('continue from their last state after all of them were stopped', async () => {
    const [granting] = cluster.members as [ClusterMember];
    // The leases of the load would expire meanwhile, each with a revision.
    const { leases: left } = await granting.lease.leaseLeases({});
    for (const { ID } of left) await granting.lease.leaseRevoke({ ID }).catch(() => undefined);
    const revision = await (await cluster.leader()).put('before', 'the restart');
    await granting.lease.leaseGrant({ ID: 9_999n, TTLMs: 600_000n });
    await cluster.stop();
    await Promise.all(['s1', 's2', 's3'].map((name) => cluster.join({ name, engine: database.url() })));
    const leader = await cluster.leader();
    for (const member of cluster.members) expect(await member.get('before')).toBe('the restart');
    const { TTLMs } = await leader.lease.leaseTimeToLive({ ID: 9_999n });
    expect(Number(TTLMs)).toBeGreaterThan(500_000);
    expect(await leader.put('after', 'the restart')).toBe(revision + 1);
    expect((await leader.cluster.memberList({})).members).toHaveLength(3);
    await cluster.checkSameState();
  });
});
