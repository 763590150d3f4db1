import { hasEtcd, hasPostgres, PostgresCluster, startEtcdCluster } from '@tenure/test-support';
import { describe, expect, test } from 'vitest';
import { GrpcClient } from '../../conformance/client/grpc-client.ts';
import { Cluster, eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { LeaderlessCalls } from './leaderless-calls.ts';

const timedOut = 'etcdserver: request timed out';
const why = 'the database cannot be reached';

async function health({ address }: ClusterMember): Promise<{ health: string; reason: string }> {
  const reply = await fetch(`http://${address}/health`);
  return (await reply.json()) as { health: string; reason: string };
}

/** Awaited together: a slow machine changes its leader more than once. */
async function hasRecovered(member: ClusterMember): Promise<void> {
  await eventually(`${member.name} is healthy and reports no error`, async () => {
    expect(await member.ready()).toMatchObject({ status: 200 });
    expect(await member.put('after', member.name)).toBeGreaterThan(0);
    expect(await health(member)).toEqual({ health: 'true', reason: '' });
    const status = await member.maintenance.status({});
    expect(status.errors).toEqual([]);
    expect(status.leader).not.toBe(0n);
    expect(status.raftIndex).toBeGreaterThanOrEqual(status.raftAppliedIndex);
    expect(status.raftTerm).toBe(status.header?.raftTerm);
    const { members } = await member.cluster.memberList({});
    expect(members.map(({ unreachable }) => unreachable)).toEqual([false, false, false]);
    return true;
  });
}

test
  .skipIf(!hasEtcd())
  .concurrent('etcd with a lost leader behaves as expected of Tenure below', async ({ onTestFinished }) => {
    const members = await startEtcdCluster();
    onTestFinished(async () => void (await Promise.all(members.map((member) => member.dispose()))));
    const [one, ...others] = members as [(typeof members)[0], ...typeof members];
    const client = new GrpcClient(one.endpoint);
    onTestFinished(() => client.close());
    const calls = await LeaderlessCalls.open(client, 1n);
    onTestFinished(() => calls.close());
    await Promise.all(others.map((other) => other.kill()));
    // etcd 3.4 returns no text for a timeout without a leader; later versions do.
    const inWords = { code: 14, details: timedOut };
    const bare = { code: 2, details: 'context deadline exceeded' };
    for (const status of await calls.check()) expect([inWords, bare]).toContainEqual(status);
  });

describe.skipIf(!hasPostgres()).concurrent('three servers whose PostgreSQL is stopped', () => {
  test('report the reason everywhere, answer requests that need only memory, and recover by themselves', async ({
    onTestFinished,
  }) => {
    const database = await PostgresCluster.create();
    onTestFinished(() => database.dispose());
    const options = ['s1', 's2', 's3'].map((name) => ({ name, engine: database.url() }));
    const cluster = await Cluster.start(options);
    onTestFinished(() => cluster.stop());
    const leader = await cluster.leader();
    const asked = [leader, ...(await cluster.followers()).slice(0, 1)];
    for (const member of cluster.members) await hasRecovered(member);
    const calls: LeaderlessCalls[] = [];
    for (const { client } of asked) calls.push(await LeaderlessCalls.open(client, BigInt(calls.length + 1)));
    onTestFinished(() => calls.forEach((each) => each.close()));

    await database.stop('immediate');
    const statuses = (await Promise.all(calls.map((each) => each.check()))).flat();
    for (const { code, details } of statuses) {
      expect(code).toBe(14);
      expect(details).toBe(timedOut);
    }
    for (const member of asked) {
      const status = await member.maintenance.status({});
      expect(status.leader).toBe(0n);
      expect(status.errors[0]).toBe('etcdserver: no leader');
      expect(status.errors[1]).toBe(why);
      const found = await health(member);
      expect(found.health).toBe('false');
      expect(found.reason).toBe('RAFT NO LEADER');
      const ready = await member.ready();
      expect(ready.status).toBe(503);
      expect(ready.text).toContain(`[-]leader failed: ${why}\n`);
      expect(ready.text).toContain('[+]serializable_read ok');
      expect((await fetch(`http://${member.address}/livez`)).status).toBe(200);
    }

    await database.start();
    for (const member of cluster.members) await hasRecovered(member);
    const { leases } = await leader.lease.leaseLeases({});
    expect(leases.map(({ ID }) => ID)).toEqual(expect.arrayContaining(calls.map(({ leaseId }) => leaseId)));
    await cluster.checkSameState();
  });
});
