import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { AbandonedLeases } from './abandoned-leases.ts';
import { ClusterLoad } from './cluster-load.ts';
import { eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { hasLocalPort } from './process-sockets.ts';
import { StallMeter } from './stall-meter.ts';
import { testedEngines } from './tested-engine.ts';

const keptTtlMs = { commit: 7_000, ci: 7_000, soak: 9_000 }[inject('effort')];
const abandonedTtlMs = 3_000;
/** The earliest that a server claims the lead after it last heard from the leader. */
const electionTimeoutMs = 1_000;
const goneWithinMs = (abandonedTtlMs * 5) / 3 + 3_000;

/** A linearizable read through a server must give this or nothing. */
async function readsNothingOlder(through: ClusterMember, value: string): Promise<void> {
  const read = await through.kv.range({ key: Buffer.from('fresh') }, { deadlineMs: 2_500 }).catch(() => undefined);
  if (read !== undefined) expect(Buffer.from(read.kvs[0]?.value ?? []).toString()).toBe(value);
}

async function becomesReady(member: ClusterMember): Promise<void> {
  await eventually(`${member.name} is ready`, async () => ((await member.ready()).status === 200 ? true : undefined));
}

// The engines wait most of the time, and so are tested side by side; the tests of one come one after the other.
async function becomesUnready(member: ClusterMember): Promise<void> {
  await eventually(`${member.name} says that it cannot serve`, async () =>
    (await member.ready()).status === 503 ? true : undefined,
  );
}

/** It leads on, unless the machine has kept the servers from running for so long that they took it for dead. */
async function expectLeadKept(leader: ClusterMember, epoch: bigint, owedMs: number): Promise<void> {
  const now = await leader.leadership();
  if (!now.leads || now.epoch !== epoch) expect(owedMs, 'the lead was lost').toBeGreaterThan(electionTimeoutMs / 2);
}

describe.for(testedEngines)('three servers on $kind', { concurrent: true }, ({ isThere, start: startEngine }) => {
  let cluster: FaultyCluster;
  let load: ClusterLoad | undefined;
  let seed = 0;
  const start = async (writeThrough: () => readonly ClusterMember[]): Promise<ClusterLoad> => {
    load = await ClusterLoad.start(cluster.servers, (seed += 1), { writeThrough, keptTtlMs });
    return load;
  };
  /** Until a client of a server that is cut off would have lost its lease, had it not been sent to another one. */
  const outlast = async (cutMs: number): Promise<void> => {
    const leftMs = cutMs + 1.2 * keptTtlMs - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, leftMs)));
  };

  beforeAll(async () => {
    if (isThere) cluster = await FaultyCluster.start(await startEngine());
  });
  afterAll(() => cluster?.dispose());
  afterEach(() => load?.stop());

  test
    .skipIf(!isThere)
    .sequential('replace a leader that is cut off from it, and that answers nothing stale', async () => {
      const out = await cluster.servers.leader();
      const running = await start(() => cluster.others(out));
      const abandoned = new AbandonedLeases(abandonedTtlMs);
      const stalls = new StallMeter(() => cluster.servers.pids);
      await abandoned.abandon(cluster.servers.members, 30, 500_000n);
      await out.put('fresh', 'old');
      cluster.engineOf(out).silence();
      const cutMs = performance.now();
      const leader = await cluster.servers.leader(cluster.others(out));
      await leader.put('fresh', 'new 1');
      await Promise.all([readsNothingOlder(out, 'new 1'), readsNothingOlder(out, 'new 1')]);
      await becomesUnready(out);
      await running.progress(30);
      await leader.put('fresh', 'new 2');
      await readsNothingOlder(out, 'new 2');
      await outlast(cutMs);
      cluster.engineOf(out).restore();
      await becomesReady(out);
      expect(await out.get('fresh')).toBe('new 2');
      await abandoned.check(running.watchOf(leader), (fromMs, toMs) => goneWithinMs + stalls.between(fromMs, toMs));
      stalls.stop();
      await running.progress(20);
      await running.finish();
    });

  test
    .skipIf(!isThere)
    .sequential('go on without a follower that is cut off from it, and that answers nothing stale', async () => {
      const [out] = (await cluster.servers.followers()) as [ClusterMember];
      const running = await start(() => cluster.others(out));
      const leader = await cluster.servers.leader();
      await leader.put('fresh', 'old 2');
      cluster.engineOf(out).silence();
      const cutMs = performance.now();
      await leader.put('fresh', 'new 3');
      await readsNothingOlder(out, 'new 3');
      await becomesUnready(out);
      await running.progress(30);
      await leader.put('fresh', 'new 4');
      await readsNothingOlder(out, 'new 4');
      await outlast(cutMs);
      cluster.engineOf(out).restore();
      await becomesReady(out);
      expect(await out.get('fresh')).toBe('new 4');
      await running.finish();
    });

  test
    .skipIf(!isThere)
    .sequential('keep their leader when one of them cannot reach it, which says so and comes back', async () => {
      const leader = await cluster.servers.leader();
      const { epoch } = await leader.leadership();
      const [out, other] = cluster.others(leader) as [ClusterMember, ClusterMember];
      const running = await start(() => [leader, other]);
      const stalls = new StallMeter(() => cluster.servers.pids);
      await out.put('fresh', 'old 5');
      cluster.peersOf(leader).silence((port) => hasLocalPort(out.process.pid, port));
      const cutMs = performance.now();
      await other.put('fresh', 'new 5');
      await readsNothingOlder(out, 'new 5');
      await becomesUnready(out);
      await becomesReady(other);
      await outlast(cutMs);
      // It hears of the leader through the log, and so leaves it the lead.
      await expectLeadKept(leader, epoch, stalls.between(cutMs, performance.now()));
      stalls.stop();
      await other.put('fresh', 'new 6');
      await readsNothingOlder(out, 'new 6');
      await running.progress(20);
      cluster.peersOf(leader).restore();
      await becomesReady(out);
      expect(await out.get('fresh')).toBe('new 6');
      await out.put('fresh', 'through a follower');
      await running.finish();
    });

  test
    .skipIf(!isThere)
    .sequential('keep their leader when none of them can reach it; they come back by themselves', async () => {
      const leader = await cluster.servers.leader();
      const { epoch } = await leader.leadership();
      const others = cluster.others(leader);
      const running = await start(() => [leader]);
      const stalls = new StallMeter(() => cluster.servers.pids);
      cluster.peersOf(leader).silence();
      const cutMs = performance.now();
      await leader.put('fresh', 'new 7');
      await Promise.all(others.map((other) => readsNothingOlder(other, 'new 7')));
      for (const other of others) await becomesUnready(other);
      await outlast(cutMs);
      await expectLeadKept(leader, epoch, stalls.between(cutMs, performance.now()));
      stalls.stop();
      cluster.peersOf(leader).restore();
      for (const other of others) await becomesReady(other);
      for (const other of others) expect(await other.get('fresh')).toBe('new 7');
      await others[0]?.put('fresh', 'through another follower');
      await running.progress(20);
      await running.finish();
    });

  test
    .skipIf(!isThere)
    .sequential('find out that the way to the leader is dead, though nobody tells them', async () => {
      const leader = await cluster.servers.leader();
      const [other] = cluster.others(leader) as [ClusterMember];
      cluster.peersOf(leader).silence();
      // From now on new connections work, and what goes over the old ones is lost, as behind a router that forgot them.
      cluster.peersOf(leader).forget();
      await becomesReady(other);
      await other.put('fresh', 'after the silence');
      expect(await leader.get('fresh')).toBe('after the silence');
    });
});
