import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { LogEngine } from '../engines/log-engine.ts';
import { memoryEngine } from '../engines/memory/memory-engine.ts';
import { VirtualNetwork } from './testing/virtual-network.ts';
import { SeededBytes } from '../random/testing/seeded-bytes.ts';
import { VirtualServer } from '../testing/virtual-server.ts';
import { VirtualClock } from '@tenure/test-support';

/** The timers and clocks of the process stand still: code that waited for them would wait for ever. */
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Servers that share a log, a virtual clock and a virtual network, all of one seed. */
class World {
  readonly clock = new VirtualClock();
  readonly log: LogEngine = memoryEngine({ isShared: true });
  readonly #network = new VirtualNetwork(this.clock);
  readonly #seed: string;

  constructor(seed: string) {
    this.#seed = seed;
  }

  start(name: string): Promise<VirtualServer> {
    const random = new SeededBytes(`${this.#seed} ${name}`);
    return this.run(VirtualServer.start({ name, clock: this.clock, random, network: this.#network, log: this.log }));
  }

  run<T>(work: Promise<T>): Promise<T> {
    return this.clock.run(work, 20_000);
  }
}

/** Two servers; the one that leads is killed, and the other takes over. Tells what happened, and when. */
async function takeover(seed: string) {
  const world = new World(seed);
  const { clock } = world;
  const first = await world.start('first');
  const second = await world.start('second');
  const leading = [first.leads, second.leads];
  const put = await world.run(second.put('k', 'through the follower'));
  const seenByLeader = first.value('k');
  await world.run(second.propose({ kind: 'leaseGrant', id: 7n, ttlMs: 5_000, label: '' }));
  const renewedMs = await world.run(Promise.resolve(second.cluster.desk.renew(7n)));
  const killedAtMs = clock.monotonicMs();
  first.kill();
  const later = await world.run(second.put('k', 'after the takeover'));
  const tookMs = clock.monotonicMs() - killedAtMs;
  const { epoch } = second.replica.state;
  const outlived = second.replica.state.lease(7n) !== undefined;
  await clock.advance(20_000);
  const told = { leading, put, seenByLeader, renewedMs, later, tookMs, epoch, leads: second.leads, outlived };
  const lease = second.replica.state.lease(7n);
  const value = second.value('k');
  await world.run(second.stop());
  const tail = await world.log.tail();
  await world.log.close();
  return { ...told, lease, value, tail };
}

test('two real servers start, forward, fail over and expire without real time, timers or sockets', async () => {
  const told = await takeover('one');
  expect(told).toMatchObject({
    leading: [true, false],
    put: { kind: 'put' },
    seenByLeader: 'through the follower',
    renewedMs: 5_000,
    later: { kind: 'put' },
    epoch: 2,
    leads: true,
    outlived: true,
    lease: undefined,
    value: 'after the takeover',
  });
  // Not before the right of the killed leader has lapsed, and not much later than the election timeout and its jitter.
  expect(told.tookMs).toBeGreaterThanOrEqual(800);
  expect(told.tookMs).toBeLessThan(2_000);
  expect(vi.getTimerCount()).toBe(0);
});

test('the same seed makes the same log, to its last hash, and another seed another one', async () => {
  const one = await takeover('one');
  expect(await takeover('one')).toEqual(one);
  expect((await takeover('two')).tail.hash).not.toBe(one.tail.hash);
});
