import { SeededRandom } from '@tenure/test-support';
import { createLeaseManager, TenureError } from 'tenure';
import type { AcquireOptions, Hold, LeaseBackend, LeaseManager } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { FakeClock } from 'tenure/testing';
import { expect } from 'vitest';
import { FaultyProcess } from './faulty-process.ts';
import type { FaultRates } from './faulty-process.ts';

const ttlMs = 1_000;
const runMs = 40_000;

/** A resource to contend for, and its number of concurrent holders. */
interface Target {
  readonly queue: string;
  readonly isExclusive: boolean;
  acquire(manager: LeaseManager, options: AcquireOptions, random: number): Promise<Hold>;
  mayHold(holds: readonly Hold[]): boolean;
}

const permits = 2;
const processCount = 3;
/** So that the check can tell a writer from a reader. */
const writers = new WeakSet<Hold>();
const targets: readonly Target[] = [
  ...['one', 'two'].map((name) => ({
    queue: `lease/${name}`,
    isExclusive: true,
    acquire: (manager: LeaseManager, options: AcquireOptions) => manager.acquire(name, options),
    mayHold: (holds: readonly Hold[]) => holds.length <= 1,
  })),
  {
    queue: 'election/main',
    isExclusive: true,
    acquire: (manager, { wait = 'forever', signal }) => manager.election('main').campaign('me', { wait, signal }),
    mayHold: (holds) => holds.length <= 1,
  },
  {
    queue: 'rw/book',
    isExclusive: false,
    acquire: async (manager, options, random) => {
      const lock = manager.readWriteLock('book');
      if (random < 0.6) return await lock.read(options);
      const hold = await lock.write(options);
      writers.add(hold);
      return hold;
    },
    mayHold: (holds) => holds.length <= 1 || !holds.some((hold) => writers.has(hold)),
  },
  {
    queue: 'semaphore/pool',
    isExclusive: false,
    acquire: (manager, options) => manager.semaphore('pool', permits).acquire(options),
    mayHold: (holds) => holds.length <= permits,
  },
];

export const calm: FaultRates = {
  lostRequest: 0,
  lostAnswer: 0,
  hang: 0,
  lostHint: 0,
  slow: 0.02,
  slowMs: 900,
  usualMs: 30,
};
export const stormy: FaultRates = { ...calm, lostRequest: 0.05, lostAnswer: 0.05, hang: 0.5, lostHint: 0.2, slow: 0.1 };

interface Held {
  readonly process: FaultyProcess;
  readonly hold: Hold;
}

/** Several processes that contend for leases and locks under all faults. */
export class Contention {
  readonly clock = new FakeClock();
  readonly store: LeaseBackend = memoryBackend({ clock: this.clock });
  readonly processes: readonly FaultyProcess[];
  readonly managers: readonly LeaseManager[];
  readonly random: SeededRandom;
  readonly held = new Map<Target, Set<Held>>(targets.map((target) => [target, new Set()]));
  readonly lastTokens = new Map<Target, bigint>();
  grants = 0;
  losses = 0;
  isOver = false;

  constructor(seed: number, rates: FaultRates) {
    this.random = new SeededRandom(seed);
    const options = { random: this.random, rates };
    this.processes = Array.from({ length: processCount }, () => new FaultyProcess(this.clock, this.store, options));
    this.managers = this.processes.map(({ backend, clock }, at) => {
      return createLeaseManager({ backend, clock, holder: `process-${at}`, ttlMs });
    });
  }

  /** Checks that there are never too many holds. A stopped process can't act under its hold meanwhile. */
  check(): void {
    for (const [target, held] of this.held) {
      const running = [...held].filter(({ process }) => !process.isStopped).map(({ hold }) => hold);
      const unaborted = running.filter((hold) => !hold.signal.aborted);
      const tokens = unaborted.map((hold) => `${hold.holder}:${hold.fencingToken}`);
      expect(target.mayHold(unaborted), `${target.queue} is held by too many: ${tokens.join(', ')}`).toBe(true);
      expect(target.mayHold(running.filter((hold) => hold.isHeld()))).toBe(true);
    }
  }

  granted(target: Target, at: Held): void {
    this.grants++;
    const { fencingToken } = at.hold;
    if (at.hold.isHeld() && target.isExclusive) {
      const last = this.lastTokens.get(target) ?? 0n;
      expect(fencingToken, `the token of ${target.queue} went back from ${last} to ${fencingToken}`).toBeGreaterThan(
        last,
      );
      this.lastTokens.set(target, fencingToken);
    }
    this.held.get(target)!.add(at);
    this.check();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(ms, resolve));
  }

  options(): AcquireOptions {
    const kind = this.random.next();
    const signal = kind < 0.25 ? this.abortedWithin(2_000) : undefined;
    const wait = kind < 0.6 ? 'forever' : kind < 0.7 ? 'none' : kind < 0.8 ? 'ttl' : this.random.next() * 3_000;
    const holdAtLeastMs = this.random.chance(0.1) ? 700 : 0;
    return { wait, signal, holdAtLeastMs, autoRenew: this.random.chance(0.9) };
  }

  abortedWithin(ms: number): AbortSignal {
    const controller = new AbortController();
    this.clock.setTimer(this.random.next() * ms, () => controller.abort(new Error('cancelled')));
    return controller.signal;
  }

  /** One task of a process: acquires, works, releases, again and again. */
  async work(at: number): Promise<void> {
    const process = this.processes[at]!;
    while (!this.isOver) {
      await this.sleep(this.random.next() * 300);
      const target = this.random.pick(targets);
      const options = this.options();
      const acquiring = target.acquire(this.managers[at]!, options, this.random.next());
      const hold = await acquiring.catch((error: unknown) => {
        expect(error instanceof TenureError || error === options.signal?.reason, String(error)).toBe(true);
        return undefined;
      });
      if (hold === undefined) continue;
      const mine = { process, hold };
      this.granted(target, mine);
      await this.sleep(this.random.chance(0.1) ? 2_500 : this.random.next() * 400);
      if (hold.signal.aborted) this.losses++;
      this.held.get(target)!.delete(mine);
      await hold.release({ lazy: this.random.chance(0.1) }).catch(() => {});
    }
  }

  async trouble(at: number): Promise<void> {
    const process = this.processes[at]!;
    while (!this.isOver) {
      await this.sleep(this.random.next() * 6_000);
      const kind = this.random.next();
      if (kind < 0.4) {
        process.isCut = true;
        await this.sleep(this.random.next() * 2_500);
        process.isCut = false;
      } else if (kind < 0.8) {
        process.stop();
        await this.sleep(this.random.next() * 2_500);
        process.resume();
      } else {
        process.jumpWall(this.random.next() * 4_000 - 2_000);
      }
    }
  }

  async run(options: { readonly trouble: boolean }): Promise<void> {
    const ended = this.managers.flatMap((_, at) => [
      this.work(at),
      this.work(at),
      ...(options.trouble ? [this.trouble(at)] : []),
    ]);
    let isFinished = false;
    let failure: unknown;
    const all = Promise.all(ended).then(
      () => (isFinished = true),
      (error: unknown) => (failure = error),
    );
    for (let passedMs = 0; passedMs < runMs && failure === undefined; passedMs += 10) {
      await this.clock.advance(10);
      this.check();
    }
    this.isOver = true;
    // Each waiter acquires the lease or gets an error, within a bound that no retry exceeds.
    for (let turns = 0; turns < 3_000 && !isFinished && failure === undefined; turns++) await this.clock.advance(20);
    if (failure !== undefined) throw failure;
    expect(isFinished, 'a waiter waits forever').toBe(true);
    await all;
    await this.end();
  }

  async end(): Promise<void> {
    let isClosed = false;
    const closed = Promise.all(this.managers.map((manager) => manager[Symbol.asyncDispose]()));
    void closed.then(() => (isClosed = true));
    for (let turns = 0; turns < 100 && !isClosed; turns++) await this.clock.advance(500);
    expect(isClosed, 'a manager does not end').toBe(true);
    await this.clock.advance(5_000);
    for (const { queue } of targets) {
      expect(await this.store.list(queue, new AbortController().signal)).toEqual([]);
    }
    await this.store.close();
    expect(this.clock.timerCount).toBe(0);
  }
}
