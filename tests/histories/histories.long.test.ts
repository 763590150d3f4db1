import { afterEach, describe, expect, test } from 'vitest';
import { EtcdProcess, hasEtcd } from '../../packages/server/src/engines/etcd/testing/etcd-process.ts';
import { hasPostgres, PostgresCluster } from '../../packages/server/src/engines/postgres/testing/postgres-cluster.ts';
import { Cluster } from '../cluster/cluster.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { FaultyCluster } from '../cluster/faulty-cluster.ts';
import { engineOnPostgres } from '../cluster/tested-engine.ts';
import { HistoryRun } from './history-run.ts';
import { moveLead } from './move-lead.ts';

const seed = Number(process.env['HISTORY_SEED'] ?? Date.now() % 1_000_000);
const standstillMs = 5_000;
/** Answered calls between two faults. */
const calls = 200;

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

describe.skipIf(!hasPostgres())(`histories of three servers on PostgreSQL (HISTORY_SEED=${seed})`, () => {
  const start = async (): Promise<FaultyCluster> => {
    const cluster = await FaultyCluster.start(engineOnPostgres(await PostgresCluster.create()));
    cleanups.push(() => cluster.dispose());
    return cluster;
  };

  test('are linearizable when leaders are killed, stand still and hand on the lead', async () => {
    const cluster = await start();
    const run = record(cluster.servers);
    for (let round = 0; round < 2; round += 1) {
      await run.progress(calls);
      const killed = await cluster.servers.leader();
      await killed.stop('SIGKILL');
      await run.progress(calls);
      await cluster.restart(killed.name);
      await cluster.servers.checkSameState();

      const still = await cluster.servers.leader();
      const others = cluster.servers.members.filter((member) => member !== still);
      still.process.signal('SIGSTOP');
      await Promise.all([cluster.servers.leader(others), new Promise((resolve) => setTimeout(resolve, standstillMs))]);
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

  test('are linearizable when the database loses connections, answers and its life', async () => {
    const cluster = await start();
    const run = record(cluster.servers);
    const lineOfLeader = async () => cluster.engineOf(await cluster.servers.leader());
    for (let round = 0; round < 2; round += 1) {
      await run.progress(calls);
      await (await lineOfLeader()).cutBeforeAnswerTo('tenure_append');
      await run.progress(calls);
      await (await lineOfLeader()).loseAnswerTo('tenure_append');
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

  test('are linearizable when a server is cut off from the database, or from the leader', async () => {
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
    await run.progress(calls / 20);
    cluster.peersOf(leader).restore();
    await run.progress(calls);
    await run.finish();
  });
});

test.skipIf(!hasEtcd())(
  `histories of three servers on etcd are linearizable through deaths (seed ${seed})`,
  async () => {
    const etcd = await EtcdProcess.start();
    cleanups.push(() => etcd.dispose());
    const optionsOf = (name: string) => ({ name, engine: `etcd://${etcd.endpoint}/tenure` });
    const cluster = await Cluster.start(['s1', 's2', 's3'].map(optionsOf));
    cleanups.push(() => cluster.stop());
    const run = record(cluster);
    await run.progress(calls);
    const killed = await cluster.leader();
    await killed.stop('SIGKILL');
    await run.progress(calls);
    await cluster.join(optionsOf(killed.name));
    await etcd.kill();
    await etcd.start();
    await run.progress(calls);
    await moveLead(cluster);
    await run.progress(calls);
    const still: ClusterMember = await cluster.leader();
    still.process.signal('SIGSTOP');
    await cluster.leader(cluster.members.filter((member) => member !== still));
    still.process.signal('SIGCONT');
    await run.progress(calls);
    expect(cluster.members).toHaveLength(3);
    await run.finish();
  },
);
