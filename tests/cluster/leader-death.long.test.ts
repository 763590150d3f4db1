import { afterEach, describe, expect, inject, test } from 'vitest';
import { AbandonedLeases } from './abandoned-leases.ts';
import { ClusterLoad } from './cluster-load.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { checkLog } from './log-check.ts';
import { StallMeter } from './stall-meter.ts';
import { testedEngines } from './tested-engine.ts';

const leases = { commit: 200, ci: 200, soak: 1_000 }[inject('effort')];
const ttlMs = { commit: 3_000, ci: 3_000, soak: 5_000 }[inject('effort')];
const keptTtlMs = 5_000;
/** The documented bounds. The delays of an overloaded machine are added: see StallMeter. */
const newLeaderWithinMs = 2_000;
const goneWithinMs = (ttlMs * 5) / 3 + 3_000;

// The tests of different engines run in parallel, since they mostly wait.
describe.for(testedEngines)('three servers on $kind', { concurrent: true }, ({ isThere, start }) => {
  let cluster: FaultyCluster | undefined;
  let load: ClusterLoad | undefined;
  afterEach(async () => {
    await load?.stop();
    await cluster?.dispose();
  });

  test.skipIf(!isThere)(
    'lose no renewed lease when the leader is killed, and expire each abandoned one in time',
    async () => {
      cluster = await FaultyCluster.start(await start());
      const { servers } = cluster;
      load = await ClusterLoad.start(servers, 1, { keptLeases: leases, keptTtlMs });
      const abandoned = new AbandonedLeases(ttlMs);
      await abandoned.abandon(servers.members, leases, 500_000n);
      const stalls = new StallMeter(() => servers.pids);

      const old = await servers.leader();
      const { epoch } = await old.leadership();
      const killedMs = performance.now();
      await old.stop('SIGKILL');
      const leader = await servers.leader();
      const nowMs = performance.now();
      const leaderlessMs = nowMs - killedMs;
      const stalledMs = stalls.between(killedMs, nowMs);
      console.log(
        `a new leader ${Math.round(leaderlessMs)} ms after kill -9; the machine stalled ${Math.round(stalledMs)} ms`,
      );
      expect(leaderlessMs).toBeLessThan(newLeaderWithinMs + stalledMs);
      expect((await leader.leadership()).epoch).toBeGreaterThan(epoch);

      await abandoned.check(load.watchOf(leader), (fromMs, toMs) => goneWithinMs + stalls.between(fromMs, toMs));
      stalls.stop();
      expect(load.leases.ids).toHaveLength(leases);
      expect(load.leases.acknowledged).toBeGreaterThan(leases);
      // If the machine delays an election for longer, the servers send their clients to another server.
      if (leaderlessMs < newLeaderWithinMs) expect(load.leases.brokenStreams).toEqual([]);
      const back = await cluster.restart(old.name);
      await load.progress(20);
      await load.finish();
      expect((await back.cluster.memberList({})).members).toHaveLength(3);
      await checkLog(cluster.engine);
    },
  );
});
