import { afterEach, describe, inject, test } from 'vitest';
import type { Cluster } from '../cluster/cluster.ts';
import { FaultyCluster } from '../cluster/faulty-cluster.ts';
import { testedEngines } from '../cluster/tested-engine.ts';
import { HistoryRun } from './history-run.ts';
import { moveLeader } from './move-leader.ts';

const seed = inject('seed');
const isSoak = inject('effort') === 'soak';
const standstillMs = isSoak ? 5_000 : 3_000;
const rounds = isSoak ? 2 : 1;
/** Answered calls between two faults. */
const calls = isSoak ? 200 : 40;

const title = `histories of three servers on $kind (TENURE_TEST_SEED=${seed})`;

// The tests of different engines run in parallel, since they mostly wait; the tests of one engine run in sequence.
describe.for(testedEngines)(title, { concurrent: true }, ({ isThere, start: startEngine }) => {
  const cleanups: (() => Promise<unknown> | void)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  /** Clients of these servers, until the test is over. */
  function record(cluster: Cluster): HistoryRun {
    const run = new HistoryRun(cluster, { seed });
    cleanups.push(() => run.stop());
    return run;
  }

  const start = async (): Promise<FaultyCluster> => {
    const cluster = await FaultyCluster.start(await startEngine());
    cleanups.push(() => cluster.dispose());
    return cluster;
  };

  test
    .skipIf(!isThere)
    .sequential('are linearizable when leaders are killed, suspended, and transfer leadership', async () => {
      const cluster = await start();
      const run = record(cluster.servers);
      for (let round = 0; round < rounds; round += 1) {
        await run.progress(calls);
        const killed = await cluster.servers.leader();
        await killed.stop('SIGKILL');
        await run.progress(calls);
        await cluster.restart(killed.name);
        await cluster.servers.checkSameState();

        const still = await cluster.servers.leader();
        const others = cluster.servers.members.filter((member) => member !== still);
        still.process.signal('SIGSTOP');
        await Promise.all([
          cluster.servers.leader(others),
          new Promise((resolve) => setTimeout(resolve, standstillMs)),
        ]);
        still.process.signal('SIGCONT');
        await run.progress(calls);
        await cluster.servers.checkSameState();

        for (let change = 0; change < 3; change += 1) {
          await moveLeader(cluster.servers);
          await run.progress(calls / 2);
        }
        await cluster.servers.checkSameState();
      }
      await run.finish();
    });

  test
    .skipIf(!isThere)
    .sequential('are linearizable when the engine loses connections and answers, and is killed', async () => {
      const cluster = await start();
      const run = record(cluster.servers);
      const lineOfLeader = async () => cluster.engineOf(await cluster.servers.leader());
      for (let round = 0; round < rounds; round += 1) {
        await run.progress(calls);
        await (await lineOfLeader()).cutBeforeAnswerTo(cluster.engine.appendText);
        await run.progress(calls);
        await (await lineOfLeader()).loseAnswerTo(cluster.engine.appendText);
        await run.progress(calls);
        for (const member of cluster.servers.members) cluster.engineOf(member).cut();
        await run.progress(calls);
        await cluster.servers.checkSameState();
        await cluster.engine.crash();
        await cluster.engine.start();
        await run.progress(calls);
        await cluster.servers.checkSameState();
      }
      await run.finish();
    });

  // tests/cluster/partitions.long.test.ts has the same cuts, and reads that must not be stale.
  if (isSoak) {
    test
      .skipIf(!isThere)
      .sequential('are linearizable when a server is cut off from the engine, or from the leader', async () => {
        const cluster = await start();
        const run = record(cluster.servers);
        await run.progress(calls);
        const out = await cluster.servers.leader();
        cluster.engineOf(out).silence();
        await cluster.servers.leader(cluster.servers.members.filter((member) => member !== out));
        await run.progress(calls);
        cluster.engineOf(out).restore();
        await run.progress(calls);
        const leader = await cluster.servers.leader();
        cluster.peersOf(leader).silence();
        // Two of three calls wait for a timeout: those through the other servers.
        await run.progress(10);
        cluster.peersOf(leader).restore();
        await run.progress(calls);
        await run.finish();
      });
  }
});
