import assert from 'node:assert/strict';
import { CuttingProxy } from '@tenure/test-support';
import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import { Contention, nowMs } from './contention.ts';
import type { ContenderOptions } from './contention.ts';
import { faultStoreKinds } from './fault-stores.ts';
import type { FaultStore } from './fault-stores.ts';

const ttlMs = 3000;
const longMs = 60_000;
const isSoak = inject('effort') === 'soak';
/** How many contend, and how often each fault comes. */
const crowd = isSoak ? 20 : 8;
const faults = isSoak ? 3 : 1;
/** What these show of a store, another one of the same kind shows as well: they are for the soak. */
const soakOnly = ['etcd', 'PostgreSQL'];
const kinds = faultStoreKinds.filter(({ name, isThere }) => (isSoak || !soakOnly.includes(name)) && isThere());

/**
 * Real processes that contend for one lease. Bounds in time are those that the library promises; what the machine kept
 * these processes waiting for it does not count.
 */
describe.each(kinds)('processes that hold a lease in $name', (kind) => {
  let store: FaultStore;
  let names = 0;

  beforeAll(async () => {
    store = await kind.start();
  });
  afterAll(() => store.dispose());

  type Contend = (count: number, options?: Partial<ContenderOptions> & { port?: number }) => Promise<void>;

  /** A test with processes of its own, which contend for a lease of their own. */
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

  test('many take their turns, never two at once, each with a greater token, and soon after a release', () =>
    withProcesses(async (contention, contend) => {
      await contend(crowd, { turns: 4, holdMs: 20, ttlMs: 20_000 });
      await contention.finished();
      contention.expectExclusion();
      assert.equal(contention.holdings.length, 4 * crowd, contention.describe());
      // Many processes on two cores keep each other waiting: the quicker ones show what the library does.
      const handOvers = contention.handOversMs();
      const quickMs = handOvers[Math.floor(handOvers.length / 4)]!;
      assert.ok(quickMs <= kind.handOverMs, `the quicker quarter of the hand-overs took up to ${quickMs} ms`);
    }));

  // Those that mostly wait for a life to end do so at the same time.
  test.concurrent('after kill -9 of the holder the next one comes within the TTL and a second', () =>
    withProcesses(async (contention, contend) => {
      await contend(4);
      let last = await contention.holder();
      for (let kill = 0; kill < faults; kill++) {
        const killedMs = nowMs();
        await contention.kill(last.holder);
        const next = await contention.holder(last);
        const tookMs = contention.tookMs(killedMs, next.fromMs);
        assert.ok(tookMs <= ttlMs + 1000 + kind.slackMs, `${tookMs} ms: ${contention.describe()}`);
        last = next;
      }
      contention.expectExclusion();
    }));

  test.concurrent('one that was stopped beyond its TTL sees at its first look that it lost the lease', () =>
    withProcesses(async (contention, contend) => {
      await contend(3);
      const stopped = await contention.holder();
      contention.pause(stopped.holder);
      const pausedMs = nowMs();
      const next = await contention.holder(stopped);
      contention.resume(stopped.holder);
      await contention.until('the stopped one has looked', () => stopped.how === 'lost');
      // A look that was under way when it was stopped may have been true; none after that was.
      assert.ok(stopped.untilMs <= pausedMs + 50, contention.describe());
      assert.ok(['stalled', 'expired', 'gone'].includes(stopped.reason ?? ''), stopped.reason);
      assert.ok(contention.tookMs(pausedMs, next.fromMs) <= ttlMs + 1000 + kind.slackMs, contention.describe());
      contention.expectExclusion();
    }));

  const waysToFail = kind.hasNetwork ? (['cut', 'silent'] as const) : [];
  test.concurrent.each(waysToFail)('one whose network is %s lets go before the next one begins', (how) =>
    withProcesses(async (contention, contend) => {
      const proxy = await CuttingProxy.before(store.port);
      try {
        await contend(1, { port: proxy.port, holder: 'far' });
        const far = await contention.holder();
        await contend(2);
        proxy.silence();
        // What is cut breaks off at once and can't connect; what is silent looks like a connection that stands.
        if (how === 'cut') proxy.cut();
        const next = await contention.holder(far);
        await contention.until('the far one has looked', () => far.how === 'lost');
        assert.ok(far.lostMs !== undefined, contention.describe());
        assert.equal(far.reason, 'unreachable');
        contention.expectExclusion();
        proxy.restore();
        await contention.kill(next.holder);
        contention.enough();
      } finally {
        await proxy.close();
      }
    }),
  );

  // An emulator in memory keeps nothing.
  if (!kind.keepsItsData) return;
  test('a store that is killed and comes back never has two holders, and goes on', () =>
    withProcesses(async (contention, contend) => {
      await contend(6, { holdMs: 300 });
      for (let restart = 0; restart < faults; restart++) {
        const before = contention.holdings.length;
        await contention.until('some had their turns', () => contention.holdings.length >= before + 4);
        await store.restart?.();
      }
      const before = contention.holdings.length;
      await contention.until('it goes on', () => contention.holdings.length >= before + 4);
      contention.enough();
      await contention.finished();
      contention.expectExclusion();
    }));
});
