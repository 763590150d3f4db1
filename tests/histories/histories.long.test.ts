import { afterEach, describe, inject, test } from 'vitest';
import type { Cluster } from '../cluster/cluster.ts';
import { FaultyCluster } from '../cluster/faulty-cluster.ts';
import { testedEngines } from '../cluster/tested-engine.ts';
import { HistoryRun } from './history-run.ts';
import { moveLead } from './move-lead.ts';

const seed = inject('seed');
const effort = inject('effort');
const standstillMs = { commit: 3_000, ci: 3_000, soak: 5_000 }[effort];
const rounds = { commit: 1, ci: 1, soak: 2 }[effort];
/** Answered calls between two faults. */
const calls = { commit: 60, ci: 60, soak: 200 }[effort];

const title = `histories of three servers on $kind (TENURE_TEST_SEED=${seed})`;

// The engines wait most of the time, and so are tested side by side; the tests of one come one after the other.
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
    .sequential('are linearizable when leaders are killed, stand still and hand on the lead', async () => {
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
          await moveLead(cluster.servers);
          await run.progress(calls / 2);
        }
        await cluster.servers.checkSameState();
      }
      await run.finish();
    });

  test
    .skipIf(!isThere)
    .sequential('are linearizable when the engine loses connections, answers and its life', async () => {
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
      // Two of three calls wait in vain: those of the others.
      await run.progress(10);
      cluster.peersOf(leader).restore();
      await run.progress(calls);
      await run.finish();
    });
});
