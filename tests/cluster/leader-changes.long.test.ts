import { afterEach, describe, expect, inject, test } from 'vitest';
import { Code, Refusal } from '../../conformance/client/refusal.ts';
import { AbandonedLeases } from './abandoned-leases.ts';
import { ClusterLoad } from './cluster-load.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import type { LastingWatch } from './lasting-watch.ts';
import { checkLog } from './log-check.ts';
import { StallMeter } from './stall-meter.ts';
import { testedEngines } from './tested-engine.ts';

const isSoak = inject('effort') === 'soak';
const moves = isSoak ? 20 : 3;
/** An even number: every other change is a kill. */
const changes = 20;
const ttlMs = 5_000;
const keptTtlMs = 5_000;
const leasesPerChange = 3;
const heartbeatMs = 200;
/** No server claims sooner than this after the leader's last entry, unless the leader has named it as its successor. */
const electionTimeoutMs = 1_000;
/** Time for the entry that ends it to be appended and reported here. */
const deliveryMs = 500;

interface Change {
  readonly fromMs: number;
  /** When all servers agreed on the next leader. */
  readonly toMs: number;
}

/**
 * The longest life of an abandoned lease. It gains at most two thirds of its TTL and a heartbeat interval, once. Each
 * change of leader adds the time without a leader, and at most one heartbeat interval.
 */
function boundMs(all: readonly Change[], fromMs: number, toMs: number): number {
  let sumMs = (ttlMs * 5) / 3 + heartbeatMs + deliveryMs;
  for (const change of all) {
    if (change.toMs < fromMs || change.fromMs > toMs) continue;
    sumMs += Math.min(change.toMs, toMs) - Math.max(change.fromMs, fromMs) + heartbeatMs;
  }
  return sumMs;
}

/** The leader transfers leadership to another server. On an overloaded machine it may lose leadership before that. */
async function moveLeader(cluster: FaultyCluster, old: ClusterMember): Promise<void> {
  const next = cluster.others(old)[0] as ClusterMember;
  const { header } = await next.maintenance.status({});
  await old.maintenance.moveLeader({ targetID: header?.memberId ?? 0n }).catch((error: unknown) => {
    if (!(error instanceof Refusal) || error.code !== Code.unavailable) throw error;
  });
}

// The tests of different engines run in parallel, since they mostly wait; the tests of one engine run in sequence.
describe.for(testedEngines)('three servers on $kind', { concurrent: true }, ({ isThere, start }) => {
  let cluster: FaultyCluster | undefined;
  let load: ClusterLoad | undefined;
  afterEach(async () => {
    await load?.stop();
    await cluster?.dispose();
  });

  test
    .skipIf(!isThere)
    .sequential('transfer leadership without a time without a leader, while clients write', async () => {
      cluster = await FaultyCluster.start(await start());
      const { servers } = cluster;
      load = await ClusterLoad.start(servers, 1);
      const stalls = new StallMeter(() => servers.pids);
      const tookMs: number[] = [];
      for (let move = 0; move < moves; move += 1) {
        await load.progress(20);
        const old = await servers.leader();
        const { epoch } = await old.leadership();
        const fromMs = performance.now();
        await moveLeader(cluster, old);
        await servers.leader(servers.members, epoch);
        const toMs = performance.now();
        tookMs.push(toMs - fromMs - stalls.between(fromMs, toMs));
      }
      stalls.stop();
      console.log(`leadership was transferred in ${tookMs.map((ms) => Math.round(ms)).join(', ')} ms`);
      expect(Math.max(...tookMs)).toBeLessThan(electionTimeoutMs);
      await load.finish();
    });

  // leader-death.long.test.ts checks the end of abandoned leases after one change, and `simulation/leases` after many.
  if (isSoak) {
    test.skipIf(!isThere).sequential('expire abandoned leases although their leader changes every TTL/2', async () => {
      cluster = await FaultyCluster.start(await start());
      const { servers } = cluster;
      load = await ClusterLoad.start(servers, 1, { keptLeases: 100, keptTtlMs });
      const abandoned = new AbandonedLeases(ttlMs);
      const stalls = new StallMeter(() => servers.pids);
      const done: Change[] = [];
      let restarted: Promise<unknown> = Promise.resolve();
      for (let count = 0; count < changes; count += 1) {
        const fromMs = performance.now();
        const old = await servers.leader();
        const { epoch } = await old.leadership();
        if (count % 2 === 0) {
          await old.stop('SIGKILL');
        } else {
          await moveLeader(cluster, old);
        }
        const leader = await servers.leader(servers.members, epoch);
        const toMs = performance.now();
        done.push({ fromMs, toMs });
        // The restart finishes before it is this server's turn to lead.
        if (count % 2 === 0) {
          restarted = cluster.restart(old.name);
          restarted.catch(() => undefined);
        } else {
          await restarted;
        }
        await abandoned.abandon([leader], leasesPerChange, BigInt(500_000 + 100 * count));
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, fromMs + ttlMs / 2 - performance.now())));
      }
      const leaderless = done.map(({ fromMs, toMs }) => Math.round(toMs - fromMs));
      console.log(`${changes} changes of leader, which took ${leaderless.join(', ')} ms`);
      await abandoned.check(
        load.watches[0] as LastingWatch,
        (fromMs, toMs) => boundMs(done, fromMs, toMs) + stalls.between(fromMs, toMs),
      );
      stalls.stop();
      await load.finish();
      expect((await checkLog(cluster.engine)).claims).toBeGreaterThan(changes);
    });
  }
});
