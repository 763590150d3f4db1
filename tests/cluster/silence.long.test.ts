import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { refusalOf } from '../../conformance/client/refusal.ts';
import { eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { testedEngines } from './tested-engine.ts';

const leaseId = 77n;
const noLeader = { code: 14, details: 'etcdserver: no leader' };

/** The names of those that this server says are unreachable. */
async function silent(asked: ClusterMember): Promise<string[]> {
  const { members } = await asked.cluster.memberList({});
  return members.filter(({ unreachable }) => unreachable).map(({ name }) => name);
}

async function says(asked: ClusterMember, expected: readonly ClusterMember[]): Promise<void> {
  const names = expected.map(({ name }) => name).sort();
  await eventually(`${asked.name} says that ${names.join(', ') || 'nobody'} is silent`, async () => {
    const found = await silent(asked);
    if (found.sort().join() !== names.join()) throw new Error(`it says ${found.join(', ')}`);
    return found;
  });
}

async function becomesReady(member: ClusterMember): Promise<void> {
  await eventually(`${member.name} is ready`, async () => ((await member.ready()).status === 200 ? true : undefined));
}

// The engines wait most of the time, and so are tested side by side; the tests of one come one after the other.
describe.for(testedEngines)('three servers on $kind', { concurrent: true }, ({ isThere, start }) => {
  let cluster: FaultyCluster;

  beforeAll(async () => {
    if (isThere) cluster = await FaultyCluster.start(await start());
  });
  afterAll(() => cluster?.dispose());

  test
    .skipIf(!isThere)
    .sequential('send clients elsewhere from one that cannot reach the leader, and say why', async () => {
      const leader = await cluster.servers.leader();
      const [asked, other] = cluster.others(leader) as [ClusterMember, ClusterMember];
      for (const member of cluster.servers.members) await becomesReady(member);
      for (const member of cluster.servers.members) await says(member, []);
      await leader.lease.leaseGrant({ ID: leaseId, TTL: 120n });
      const waiting = new KeepAliveStream(asked.client);
      const requiring = new KeepAliveStream(asked.client, { metadata: { hasleader: 'true' } });
      for (const stream of [waiting, requiring]) expect((await stream.renew(leaseId)).TTL).toBe(120n);

      // Neither side is told that its connections are dead.
      cluster.peersOf(leader).silence();
      waiting.send(leaseId);
      expect(await waiting.ended).toEqual(noLeader);
      expect(await requiring.ended).toEqual(noLeader);
      const words = 'the leader cannot be reached';
      const { status, text } = await asked.ready();
      expect(status).toBe(503);
      expect(text).toContain(`[-]leader failed: ${words}\n`);
      expect(asked.process.err).toMatch(
        new RegExp(`the leader ${leader.name} \\(http://127\\.0\\.0\\.1:\\d+\\) cannot be reached: `),
      );
      // The log tells it still who leads.
      const told = await asked.maintenance.status({});
      expect(told.leader).toBe((await leader.leadership()).leader);
      expect(told.errors).toEqual([words]);
      const inVain = await refusalOf(asked.kv.range({ key: Buffer.from('key') }, { deadlineMs: 30_000 }));
      expect(inVain).toEqual({ code: 14, details: 'etcdserver: request timed out' });
      await says(leader, [asked, other]);
      await says(asked, [leader, other]);

      cluster.peersOf(leader).restore();
      await becomesReady(asked);
      for (const member of cluster.servers.members) await says(member, []);
      const again = new KeepAliveStream(asked.client, { metadata: { hasleader: 'true' } });
      expect((await again.renew(leaseId)).TTL).toBe(120n);
      again.close();
    });

  test
    .skipIf(!isThere)
    .sequential('mark one that is gone, wherever they are asked, until it is back or forgotten', async () => {
      const leader = await cluster.servers.leader();
      const [asked, gone] = cluster.others(leader) as [ClusterMember, ClusterMember];
      await gone.stop('SIGKILL');
      for (const member of [leader, asked]) await says(member, [gone]);
      const back = await cluster.restart(gone.name);
      for (const member of [leader, asked, back]) await says(member, []);
      // One that stands still says nothing either, though its connections stand.
      back.process.signal('SIGSTOP');
      for (const member of [leader, asked]) await says(member, [back]);
      back.process.signal('SIGCONT');
      for (const member of [leader, asked, back]) await says(member, []);
      // A new leader tells the same of those who are silent towards it.
      await leader.stop('SIGKILL');
      for (const member of [asked, back]) await says(member, [leader]);
      const { members } = await asked.cluster.memberList({});
      const { ID } = members.find(({ name }) => name === leader.name) ?? { ID: 0n };
      await asked.cluster.memberRemove({ ID });
      for (const member of [asked, back]) await says(member, []);
    });
});
