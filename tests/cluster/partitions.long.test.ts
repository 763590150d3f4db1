import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { AbandonedLeases } from './abandoned-leases.ts';
import { ClusterLoad } from './cluster-load.ts';
import { eventually } from './cluster.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { expectLeadKept } from './lead-kept.ts';
import { hasLocalPort } from './process-sockets.ts';
import { StallMeter } from './stall-meter.ts';
import { testedEngines } from './tested-engine.ts';

const isSoak = inject('effort') === 'soak';
/** Long enough for a client of a cut off server to be sent to another one, on a machine that has much else to do. */
const keptTtlMs = 10_000;
const abandonedTtlMs = 3_000;
const goneWithinMs = (abandonedTtlMs * 5) / 3 + 3_000;

/** A linearizable read through a server must return this or nothing. */
async function readsNothingOlder(through: ClusterMember, value: string): Promise<void> {
  const read = await through.kv.range({ key: Buffer.from('fresh') }, { deadlineMs: 2_500 }).catch(() => undefined);
  if (read !== undefined) expect(Buffer.from(read.kvs[0]?.value ?? []).toString()).toBe(value);
}

async function becomesReady(member: ClusterMember): Promise<void> {
  await eventually(`${member.name} is ready`, async () => ((await member.ready()).status === 200 ? true : undefined));
}

async function becomesUnready(member: ClusterMember): Promise<void> {
  await eventually(`${member.name} reports that it cannot serve`, async () =>
    (await member.ready()).status === 503 ? true : undefined,
  );
}

// The tests of different engines run in parallel, since they mostly wait; the tests of one engine run in sequence.
describe.for(testedEngines)('three servers on $kind', { concurrent: true }, ({ isThere, start: startEngine }) => {
  let cluster: FaultyCluster;
  let load: ClusterLoad | undefined;
  let seed = 0;
  const start = async (writeThrough: () => readonly ClusterMember[]): Promise<ClusterLoad> => {
    load = await ClusterLoad.start(cluster.servers, (seed += 1), { writeThrough, keptTtlMs });
    return load;
  };
  /** A client of the isolated server would have lost its lease by now, had it not been sent to another server. */
  const outlast = async (cutMs: number): Promise<void> => {
    const leftMs = cutMs + 1.2 * keptTtlMs - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, leftMs)));
  };

  beforeAll(async () => {
    if (isThere) cluster = await FaultyCluster.start(await startEngine());
  });
  afterAll(() => cluster?.dispose());
  afterEach(() => load?.stop());

  test.skipIf(!isThere).sequential('replace a leader that is cut off from it and gives no stale answer', async () => {
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
    .sequential('continue without a follower that is cut off from it and gives no stale answer', async () => {
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
      // Its clients keep their leases as those of the former leader did above.
      if (isSoak) await outlast(cutMs);
      cluster.engineOf(out).restore();
      await becomesReady(out);
      expect(await out.get('fresh')).toBe('new 4');
      await running.finish();
    });

  test
    .skipIf(!isThere)
    .sequential('keep their leader when one of them cannot reach it, which reports that and recovers', async () => {
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
      // It hears of the leader through the log, and so does not claim.
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
    .sequential('detect a dead connection to the leader without an error of the network', async () => {
      const leader = await cluster.servers.leader();
      const [other] = cluster.others(leader) as [ClusterMember];
      cluster.peersOf(leader).silence();
      // From now on new connections work, and packets on the old ones are lost, as behind a router that forgot them.
      cluster.peersOf(leader).forget();
      await becomesReady(other);
      await other.put('fresh', 'after the silence');
      expect(await leader.get('fresh')).toBe('after the silence');
    });
});
