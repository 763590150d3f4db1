import assert from 'node:assert/strict';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { TcpProxy } from '../../packages/server/src/engines/postgres/testing/tcp-proxy.ts';
import { Contention, nowMs } from './contention.ts';
import type { ContenderOptions } from './contention.ts';
import { faultStoreKinds } from './fault-stores.ts';
import type { FaultStore } from './fault-stores.ts';

const ttlMs = 3000;
const longMs = 60_000;

/**
 * Real processes that contend for one lease. Bounds in time are those that the library promises plus the stalls of
 * this process, which shares the machine with all of them.
 */
describe.each(faultStoreKinds.filter(({ isThere }) => isThere()))('processes that hold a lease in $name', (kind) => {
  let store: FaultStore;
  let contention: Contention;
  let names = 0;
  const proxies: TcpProxy[] = [];

  beforeAll(async () => {
    store = await kind.start();
  });
  afterEach(async () => {
    await contention.dispose();
    await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  });
  afterAll(() => store.dispose());

  async function contend(count: number, options: Partial<ContenderOptions> & { port?: number } = {}): Promise<void> {
    const { port = store.port, ...rest } = options;
    const name = `${kind.name}-${names}`;
    const fixed = { backend: store.backend(port), name, ttlMs, turns: 1_000, holdMs: longMs };
    await Promise.all(
      Array.from({ length: count }, (_, at) => contention.start({ holder: `p${at}`, ...fixed, ...rest })),
    );
  }

  function begin(): void {
    contention = new Contention();
    names++;
  }

  async function proxyBefore(): Promise<TcpProxy> {
    const proxy = await TcpProxy.before(store.port);
    proxies.push(proxy);
    return proxy;
  }

  test('twenty take their turns, never two at once, each with a greater token, and soon after a release', async () => {
    begin();
    await contend(20, { turns: 4, holdMs: 20, ttlMs: 20_000 });
    await contention.finished();
    contention.expectExclusion();
    assert.equal(contention.holdings.length, 80, contention.describe());
    // Twenty processes on two cores keep each other waiting: the quicker ones show what the library does.
    const handOvers = contention.handOversMs();
    const quickMs = handOvers[Math.floor(handOvers.length / 4)]!;
    assert.ok(quickMs <= kind.handOverMs, `the quicker quarter of the hand-overs took up to ${quickMs} ms`);
  });

  test('after kill -9 of the holder the next one comes within the TTL and a second', async () => {
    begin();
    await contend(4);
    let last = await contention.holder();
    for (let kill = 0; kill < 3; kill++) {
      const killedMs = nowMs();
      await contention.kill(last.holder);
      const next = await contention.holder(last);
      const tookMs = next.fromMs - killedMs;
      assert.ok(tookMs <= ttlMs + 1000 + kind.slackMs, `${tookMs} ms: ${contention.describe()}`);
      last = next;
    }
    contention.expectExclusion();
  });

  test('one that was stopped beyond its TTL sees at its first look that it lost the lease', async () => {
    begin();
    await contend(3);
    const stopped = await contention.holder();
    contention.pause(stopped.holder);
    const pausedMs = nowMs();
    const next = await contention.holder(stopped);
    contention.resume(stopped.holder);
    await contention.until('the stopped one has looked', () => stopped.how === 'lost');
    // A look that was under way when it was stopped may have been true; none after that was.
    assert.ok(stopped.untilMs <= pausedMs + 50, contention.describe());
    assert.ok(['stalled', 'expired', 'stolen'].includes(stopped.reason ?? ''), stopped.reason);
    assert.ok(next.fromMs - pausedMs <= ttlMs + 1000 + kind.slackMs, contention.describe());
    contention.expectExclusion();
  });

  if (kind.hasNetwork) {
    test.each(['cut', 'silent'] as const)('one whose network is %s lets go before the next one begins', async (how) => {
      begin();
      const proxy = await proxyBefore();
      await contend(1, { port: proxy.port, holder: 'far' });
      const far = await contention.holder();
      await contend(2);
      proxy.silence();
      // What is cut breaks off at once and can't connect; what is silent looks like a connection that stands.
      if (how === 'cut') proxy.cut();
      const next = await contention.holder(far);
      await contention.until('the far one has looked', () => far.how === 'lost');
      assert.ok(far.lostMs !== undefined && far.lostMs <= next.fromMs, contention.describe());
      assert.equal(far.reason, 'unreachable');
      contention.expectExclusion();
      proxy.restore();
      await contention.kill(next.holder);
      contention.enough();
    });
  }

  // An emulator in memory keeps nothing.
  if (kind.keepsItsData) {
    test('a store that is killed and comes back never has two holders, and goes on', async () => {
      begin();
      await contend(6, { holdMs: 300 });
      for (let restart = 0; restart < 3; restart++) {
        const before = contention.holdings.length;
        await contention.until('some had their turns', () => contention.holdings.length >= before + 4);
        await store.restart?.();
      }
      const before = contention.holdings.length;
      await contention.until('it goes on', () => contention.holdings.length >= before + 4);
      contention.enough();
      await contention.finished();
      contention.expectExclusion();
    });
  }
});
