import { CuttingProxy } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { Contention, nowMs } from './contention.ts';
import type { ContenderOptions } from './contention.ts';
import { faultStoreKinds } from './fault-stores.ts';
import type { FaultStore } from './fault-stores.ts';

const ttlMs = 3000;
const longMs = 60_000;
const isSoak = inject('effort') === 'soak';
/**
 * The number of processes in each test. `simulation/library` judges contention; a short run shows that real processes,
 * sockets and stores fail as simulated.
 */
const contenders = isSoak
  ? { crowd: 20, beforeKill: 4, beforePause: 3, besideCut: 2, beforeRestart: 6 }
  : { crowd: 4, beforeKill: 2, beforePause: 2, besideCut: 1, beforeRestart: 3 };
const turns = 4;
const faults = isSoak ? 3 : 1;
/** Stores that run only in the soak: two are similar to another one of the list, and DynamoDB is an emulator. */
const soakOnly = ['etcd', 'PostgreSQL', 'DynamoDB'];
const kinds = faultStoreKinds.filter(({ name, isThere }) => (isSoak || !soakOnly.includes(name)) && isThere());

/**
 * Real processes that contend for one lease. The time limits are those that the library promises, less the time in
 * which the machine did not let these processes run.
 */
describe.each(kinds)('processes that hold a lease in $name', (kind) => {
  let store: FaultStore;
  let names = 0;

  beforeAll(async () => {
    store = await kind.start();
  });
  afterAll(() => store.dispose());

  type Contend = (count: number, options?: Partial<ContenderOptions> & { port?: number }) => Promise<void>;

  /** A test with its own processes, which contend for a lease of their own. */
  async function withProcesses(work: (contention: Contention, contend: Contend) => Promise<void>): Promise<void> {
    const contention = new Contention();
    const name = `${kind.name}-${names++}`;
    const contend: Contend = async (count, { port = store.port, ...rest } = {}) => {
      const fixed = { backend: store.backend(port), name, ttlMs, turns: 1_000, holdMs: longMs };
      await Promise.all(
        Array.from({ length: count }, (_, at) =>
          contention.start({ holder: `p${at}`, seed: inject('seed') + at, ...fixed, ...rest }),
        ),
      );
    };
    await work(contention, contend).finally(() => contention.dispose());
  }

  test('hold one at a time, each with a greater token, and soon after a release', () =>
    withProcesses(async (contention, contend) => {
      await contend(contenders.crowd, { turns, holdMs: 20, ttlMs: 20_000 });
      await contention.finished();
      contention.expectExclusion();
      expect(contention.holdings.length, contention.describe()).toBe(turns * contenders.crowd);
      // Many processes on two cores delay each other, so only the quicker quarter is checked.
      const handOvers = contention.handOversMs();
      const quickMs = handOvers[Math.floor(handOvers.length / 4)]!;
      expect(quickMs, `the quicker quarter of the hand-overs took up to ${quickMs} ms`).toBeLessThanOrEqual(
        kind.handOverMs,
      );
    }));

  // Tests that mostly wait for an expiry run concurrently.
  test.concurrent('after kill -9 of the holder the next one comes within the TTL and a second', () =>
    withProcesses(async (contention, contend) => {
      await contend(contenders.beforeKill);
      let last = await contention.holder();
      for (let kill = 0; kill < faults; kill++) {
        const killedMs = nowMs();
        await contention.kill(last.holder);
        const next = await contention.holder(last);
        const tookMs = contention.tookMs(killedMs, next.fromMs);
        expect(tookMs, `${tookMs} ms: ${contention.describe()}`).toBeLessThanOrEqual(ttlMs + 1000 + kind.slackMs);
        last = next;
      }
      contention.expectExclusion();
    }));

  test.concurrent('a process that was stopped beyond its TTL notices the loss at its first check', () =>
    withProcesses(async (contention, contend) => {
      await contend(contenders.beforePause);
      const stopped = await contention.holder();
      contention.pause(stopped.holder);
      const pausedMs = nowMs();
      const next = await contention.holder(stopped);
      contention.resume(stopped.holder);
      await contention.until('the stopped process has checked', () => stopped.how === 'lost');
      // A check in progress when the process was stopped may have succeeded; no later one did.
      expect(stopped.untilMs, contention.describe()).toBeLessThanOrEqual(pausedMs + 50);
      expect(['stalled', 'expired', 'gone'], stopped.reason).toContain(stopped.reason ?? '');
      expect(contention.tookMs(pausedMs, next.fromMs), contention.describe()).toBeLessThanOrEqual(
        ttlMs + 1000 + kind.slackMs,
      );
      contention.expectExclusion();
    }));

  const waysToFail = kind.hasNetwork ? (['cut', 'silent'] as const) : [];
  test.concurrent.each(waysToFail)('a holder whose network is %s stops before the next one begins', (how) =>
    withProcesses(async (contention, contend) => {
      const proxy = await CuttingProxy.before(store.port);
      try {
        await contend(1, { port: proxy.port, holder: 'far' });
        const far = await contention.holder();
        await contend(contenders.besideCut);
        proxy.silence();
        // A cut connection breaks at once and can't reconnect; a silent one looks established.
        if (how === 'cut') proxy.cut();
        const next = await contention.holder(far);
        await contention.until('the partitioned process has checked', () => far.how === 'lost');
        expect(far.lostMs, contention.describe()).toBeDefined();
        expect(far.reason).toBe('unreachable');
        contention.expectExclusion();
        proxy.restore();
        await contention.kill(next.holder);
        contention.enough();
      } finally {
        await proxy.close();
      }
    }),
  );

  // An emulator in memory loses its data.
  if (!kind.keepsItsData) return;
  test('a store that is killed and restarted never has two holders, and continues', () =>
    withProcesses(async (contention, contend) => {
      await contend(contenders.beforeRestart, { holdMs: 300 });
      for (let restart = 0; restart < faults; restart++) {
        const before = contention.holdings.length;
        await contention.until('some have held', () => contention.holdings.length >= before + 4);
        await store.restart?.();
      }
      const before = contention.holdings.length;
      await contention.until('it continues', () => contention.holdings.length >= before + 4);
      contention.enough();
      await contention.finished();
      contention.expectExclusion();
    }));
});
