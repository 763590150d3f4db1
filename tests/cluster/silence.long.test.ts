import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { refusalOf } from '../../conformance/client/refusal.ts';
import { eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { expectLeadKept } from './lead-kept.ts';
import { StallMeter } from './stall-meter.ts';
import { testedEngines } from './tested-engine.ts';

const leaseId = 77n;
const noLeader = { code: 14, details: 'etcdserver: no leader' };

/** The names of the members that this server reports as unreachable. */
async function silent(asked: ClusterMember): Promise<string[]> {
  const { members } = await asked.cluster.memberList({});
  return members.filter(({ unreachable }) => unreachable).map(({ name }) => name);
}

async function says(asked: ClusterMember, expected: readonly ClusterMember[]): Promise<void> {
  const names = expected.map(({ name }) => name).sort();
  await eventually(`${asked.name} reports ${names.join(', ') || 'no member'} as silent`, async () => {
    const found = await silent(asked);
    if (found.sort().join() !== names.join()) throw new Error(`it reports ${found.join(', ')}`);
    return found;
  });
}

async function becomesReady(member: ClusterMember): Promise<void> {
  await eventually(`${member.name} is ready`, async () => ((await member.ready()).status === 200 ? true : undefined));
}

// The tests of different engines run in parallel, since they mostly wait; the tests of one engine run in sequence.
describe.for(testedEngines)('three servers on $kind', { concurrent: true }, ({ isThere, start }) => {
  let cluster: FaultyCluster;

  beforeAll(async () => {
    if (isThere) cluster = await FaultyCluster.start(await start());
  });
  afterAll(() => cluster?.dispose());

  test
    .skipIf(!isThere)
    .sequential('send clients of a server that cannot reach the leader to another one, with the reason', async () => {
      const leader = await cluster.servers.leader();
      const [asked, other] = cluster.others(leader) as [ClusterMember, ClusterMember];
      for (const member of cluster.servers.members) await becomesReady(member);
      for (const member of cluster.servers.members) await says(member, []);
      await leader.lease.leaseGrant({ ID: leaseId, TTL: 120n });
      const waiting = new KeepAliveStream(asked.client);
      const requiring = new KeepAliveStream(asked.client, { metadata: { hasleader: 'true' } });
      for (const stream of [waiting, requiring]) expect((await stream.renew(leaseId)).TTL).toBe(120n);

      const { epoch } = await leader.leadership();
      const stalls = new StallMeter(() => cluster.servers.pids);
      // Neither side gets an error for its dead connections.
      cluster.peersOf(leader).silence();
      const cutMs = performance.now();
      await leader.put('key', 'new');
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
      // The log still names the leader.
      const told = await asked.maintenance.status({});
      expect(told.leader).toBe((await leader.leadership()).leader);
      expect(told.errors).toEqual([words]);
      const unanswered = await refusalOf(asked.kv.range({ key: Buffer.from('key') }, { deadlineMs: 30_000 }));
      expect(unanswered).toEqual({ code: 14, details: 'etcdserver: request timed out' });
      await says(leader, [asked, other]);
      await says(asked, [leader, other]);
      // The others hear of the leader through the log, and so do not claim.
      await expectLeadKept(leader, epoch, stalls.between(cutMs, performance.now()));
      stalls.stop();

      cluster.peersOf(leader).restore();
      for (const member of [asked, other]) await becomesReady(member);
      expect(await asked.get('key')).toBe('new');
      for (const member of cluster.servers.members) await says(member, []);
      const again = new KeepAliveStream(asked.client, { metadata: { hasleader: 'true' } });
      expect((await again.renew(leaseId)).TTL).toBe(120n);
      again.close();
    });

  test.skipIf(!isThere).sequential('mark a missing member on every server, until it is back or removed', async () => {
    const leader = await cluster.servers.leader();
    const [asked, gone] = cluster.others(leader) as [ClusterMember, ClusterMember];
    await gone.stop('SIGKILL');
    for (const member of [leader, asked]) await says(member, [gone]);
    const back = await cluster.restart(gone.name);
    for (const member of [leader, asked, back]) await says(member, []);
    // A suspended server sends nothing either, though its connections stay open.
    back.process.signal('SIGSTOP');
    for (const member of [leader, asked]) await says(member, [back]);
    back.process.signal('SIGCONT');
    for (const member of [leader, asked, back]) await says(member, []);
    // A new leader reports the members that are silent towards it.
    await leader.stop('SIGKILL');
    for (const member of [asked, back]) await says(member, [leader]);
    const { members } = await asked.cluster.memberList({});
    const { ID } = members.find(({ name }) => name === leader.name) ?? { ID: 0n };
    await asked.cluster.memberRemove({ ID });
    for (const member of [asked, back]) await says(member, []);
  });
});
