import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { ClusterLoad } from './cluster-load.ts';
import type { ClusterMember } from './cluster-member.ts';
import { FaultyCluster } from './faulty-cluster.ts';
import { checkLog } from './log-check.ts';
import { testedEngines } from './tested-engine.ts';

const isSoak = inject('effort') === 'soak';
const crashes = 3;
const outagesMs = isSoak ? [5_000, 30_000] : [8_000];
/** One of each kind in a short run. */
const cuts = isSoak ? 8 : 2;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

// The tests of different engines run in parallel, since they mostly wait; the tests of one engine run in sequence.
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

  /** Serializable reads need only memory; linearizable reads wait. */
  const checkReads = async (): Promise<void> => {
    for (const { kv } of cluster.servers.members) {
      const { kvs } = await kv.range({ key: Buffer.from('before'), serializable: true });
      expect(kvs).toHaveLength(1);
    }
    const [asked] = cluster.servers.members as [ClusterMember];
    await expect(asked.kv.range({ key: Buffer.from('before') }, { deadlineMs: 1_500 })).rejects.toThrow(
      // Reported by the server or by the client's own timer, whichever is first.
      /deadline exceeded/i,
    );
  };

  // The outage below begins with a crash.
  if (isSoak) {
    test.skipIf(!isThere).sequential('lose nothing when it crashes repeatedly under load', async () => {
      const running = await start();
      for (let crash = 0; crash < crashes; crash += 1) {
        await running.progress(40);
        await cluster.engine.crash();
        await cluster.engine.start();
      }
      await running.progress(40);
      await running.finish();
    });
  }

  for (const awayMs of outagesMs) {
    test
      .skipIf(!isThere)
      .sequential(
        `wait while it is down for ${awayMs / 1_000} s, and answer requests that need only memory`,
        async () => {
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
        },
      );
  }

  test.skipIf(!isThere).sequential('know the outcome of an append whose answer was lost after its commit', async () => {
    const running = await start();
    for (let cut = 0; cut < cuts; cut += 1) {
      await running.progress(20);
      const { appendText } = cluster.engine;
      const line = cluster.engineOf(await cluster.servers.leader());
      // Half of the time the connection breaks, and half of the time it hangs.
      await (cut % 2 === 0 ? line.cutBeforeAnswerTo(appendText) : line.loseAnswerTo(appendText));
    }
    await running.progress(40);
    await running.finish();
  });

  test.skipIf(!isThere).sequential('have written nothing twice, and nothing of a past epoch', async () => {
    const { entries, claims } = await checkLog(cluster.engine);
    console.log(`${claims} epochs in ${entries} entries of the log`);
  });
});
