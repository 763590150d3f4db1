import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { ClusterLoad } from './cluster-load.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { checkLog } from './log-check.ts';
import { testedEngines } from './tested-engine.ts';

const effort = inject('effort');
const crashes = { commit: 2, ci: 2, soak: 3 }[effort];
const outagesMs = { commit: [8_000], ci: [8_000], soak: [5_000, 30_000] }[effort];
const cuts = { commit: 4, ci: 4, soak: 8 }[effort];

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

// The engines wait most of the time, and so are tested side by side; the tests of one come one after the other.
describe.for(testedEngines)('three servers on $kind', { concurrent: true }, ({ isThere, start: startEngine }) => {
  let cluster: FaultyCluster;
  let load: ClusterLoad | undefined;
  let seed = 0;
  const start = async (): Promise<ClusterLoad> => {
    load = await ClusterLoad.start(cluster.servers, (seed += 1));
    return load;
  };

  beforeAll(async () => {
    if (isThere) cluster = await FaultyCluster.start(await startEngine());
  });
  afterAll(() => cluster?.dispose());
  afterEach(() => load?.stop());

  /** Serializable reads need no more than memory; linearizable ones wait. */
  const checkReads = async (): Promise<void> => {
    for (const { kv } of cluster.servers.members) {
      const { kvs } = await kv.range({ key: Buffer.from('before'), serializable: true });
      expect(kvs).toHaveLength(1);
    }
    const [asked] = cluster.servers.members as [ClusterMember];
    await expect(asked.kv.range({ key: Buffer.from('before') }, { deadlineMs: 1_500 })).rejects.toThrow(
      // Told by the server, or by the client's own clock, whichever is first.
      /deadline exceeded/i,
    );
  };

  test.skipIf(!isThere).sequential('lose nothing when it crashes under load, again and again', async () => {
    const running = await start();
    for (let crash = 0; crash < crashes; crash += 1) {
      await running.progress(40);
      await cluster.engine.crash();
      await cluster.engine.start();
    }
    await running.progress(40);
    await running.finish();
  });

  for (const awayMs of outagesMs) {
    test
      .skipIf(!isThere)
      .sequential(`wait while it is away for ${awayMs / 1_000} s; what only needs memory goes on`, async () => {
        const running = await start();
        await running.progress(40);
        await (await cluster.servers.leader()).put('before', `an outage of ${awayMs} ms`);
        for (const member of cluster.servers.members) expect(await member.get('before')).toContain(`${awayMs}`);
        await cluster.engine.crash();
        const untilMs = performance.now() + awayMs;
        await checkReads();
        await pause(untilMs - performance.now());
        await cluster.engine.start();
        await running.progress(40);
        await running.finish();
        for (const member of cluster.servers.members) expect((await member.ready()).status).toBe(200);
      });
  }

  test
    .skipIf(!isThere)
    .sequential('know what became of an append whose answer was lost behind its commit', async () => {
      const running = await start();
      for (let cut = 0; cut < cuts; cut += 1) {
        await running.progress(20);
        const { appendText } = cluster.engine;
        const line = cluster.engineOf(await cluster.servers.leader());
        // Half of the time the connection breaks off, and half of the time it hangs.
        await (cut % 2 === 0 ? line.cutBeforeAnswerTo(appendText) : line.loseAnswerTo(appendText));
      }
      await running.progress(40);
      await running.finish();
    });

  test.skipIf(!isThere).sequential('have written nothing twice, and nothing of an epoch that was over', async () => {
    const { entries, claims } = await checkLog(cluster.engine);
    console.log(`${claims} epochs in ${entries} entries of the log`);
  });
});
