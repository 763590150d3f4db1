import type { SeededRandom } from '@tenure/test-support';
import type { EntryMode, LeaseBackend } from '../../packages/client/src/backend/lease-backend.ts';
import { TenureError } from '../../packages/client/src/errors/tenure-error.ts';
import { BackedLeaseManager } from '../../packages/client/src/lease-manager.ts';
import type { AcquireOptions } from '../../packages/client/src/leases/acquire-options.ts';
import type { Hold } from '../../packages/client/src/leases/hold.ts';
import type { World } from '../world/world.ts';
import type { GuardedResource } from './guarded-resource.ts';
import type { HoldChecker } from './hold-checker.ts';
import type { LeftoverChecker } from './leftover-checker.ts';
import type { LibraryProcess } from './library-process.ts';
import type { LibraryScenario } from './library-scenario.ts';
import { SeededValues } from './seeded-values.ts';
import type { StoreNetwork } from './store-network.ts';

export interface LibraryClientOptions {
  readonly process: LibraryProcess;
  readonly backend: LeaseBackend;
  readonly scenario: LibraryScenario;
  readonly holds: HoldChecker;
  readonly leftovers: LeftoverChecker;
  readonly resource: GuardedResource;
  /** The way to the resource. */
  readonly network: StoreNetwork;
  readonly world: World;
}

/** What is running of one request. */
interface Pending {
  isOver: boolean;
}

/** A call that is cancelled or times out may first wait for the answer to a renewal, for this share of the TTL. */
const renewalShare = 1 / 6;
const renewalMinMs = 50;
/** The rounding of timers. */
const roundingMs = 5;

const permits = 2;
const names = ['nightly', 'invoices'];

/** How a caller asks for a hold. */
interface Request {
  readonly queue: string;
  readonly mode: EntryMode;
  readonly permits: number;
  readonly options: AcquireOptions;
}

/** One process that uses the library: a lease manager, and callers that acquire, work and release. */
export class LibraryClient {
  readonly process: LibraryProcess;
  readonly #options: LibraryClientOptions;
  readonly #manager: BackedLeaseManager;
  /** Holds of handles, which several callers share. */
  readonly #shared = new WeakSet<Hold>();
  #isSettling = false;
  #runningCallers = 0;

  constructor(options: LibraryClientOptions) {
    const { process, backend, world } = options;
    this.process = process;
    this.#options = options;
    const holder = process.name;
    const values = new SeededValues(world.random(`${holder} values`));
    this.#manager = new BackedLeaseManager({ backend, holder, clock: process }, values);
    this.#manager.addListener({
      afterLoss: (hold) => {
        world.coverage.count('library: a hold was lost');
        world.trace.note(process.name, () => `loses ${hold.entry.name}, token ${hold.fencingToken}`);
        options.holds.lossTold(hold, process.name);
      },
    });
  }

  /** Calls that have not ended. */
  get runningCallers(): number {
    return this.#runningCallers;
  }

  start(): void {
    const { scenario, world, process } = this.#options;
    for (let caller = 1; caller <= scenario.callers; caller += 1) {
      void this.#loop(world.random(`${process.name} caller ${caller}`));
    }
  }

  /** From here on no call is cancelled, and no further one begins. */
  settle(): void {
    this.#isSettling = true;
  }

  async close(): Promise<void> {
    await this.#manager[Symbol.asyncDispose]();
  }

  async #loop(random: SeededRandom): Promise<void> {
    const { scenario, process } = this.#options;
    this.#runningCallers += 1;
    while (!this.#isSettling) {
      await process.sleep(random.between(0, 300));
      if (this.#isSettling) break;
      try {
        await this.#use(random, random.pick(scenario.uses));
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#runningCallers -= 1;
  }

  /** The library documents which errors a call rejects with. */
  #failed(error: unknown): void {
    const { violations, coverage } = this.#options.world;
    if (error instanceof TenureError) coverage.count(`library: ${error.name}`);
    else if (error === cancelled) coverage.count('library: a cancelled call');
    else violations.report('failed', error instanceof Error ? (error.stack ?? error.message) : String(error));
  }

  async #use(random: SeededRandom, use: LibraryScenario['uses'][number]): Promise<void> {
    const name = random.pick(names);
    const manager = this.#manager;
    const options = this.#acquireOptions(random);
    const exclusive = { mode: 'exclusive', permits: 1, options } as const;
    const lease = { ...exclusive, queue: `lease/${name}` };
    if (use === 'acquire') return await this.#hold(random, lease, () => manager.tryAcquire(name, options));
    if (use === 'withLease') return await this.#withLease(random, name, lease);
    if (use === 'handle') return await this.#handle(random, name, lease);
    if (use === 'semaphore') {
      const request = { queue: `semaphore/${name}`, mode: 'permit', permits, options } as const;
      return await this.#hold(random, request, () => manager.semaphore(name, permits).tryAcquire(options));
    }
    if (use === 'readWrite') {
      const queue = `rw/${name}`;
      const lock = manager.readWriteLock(name);
      if (random.chance(0.6)) {
        return await this.#hold(random, { ...exclusive, queue, mode: 'shared' }, () => lock.tryRead(options));
      }
      return await this.#hold(random, { ...exclusive, queue }, () => lock.tryWrite(options));
    }
    const request = { ...exclusive, queue: `election/${name}` };
    const election = manager.election(name, { ttlMs: options.ttlMs! });
    const campaign = { signal: options.signal, wait: options.wait! };
    return await this.#hold(random, request, () => election.campaign('here', campaign));
  }

  async #hold(random: SeededRandom, request: Request, acquire: () => Promise<Hold | null>): Promise<void> {
    const { leftovers, process } = this.#options;
    leftovers.began(process, request.queue);
    const pending = this.#expectEnd(request);
    try {
      const hold = await acquire();
      pending.isOver = true;
      if (hold === null) return;
      this.#granted(hold, request);
      await this.#work(random, hold);
      if (random.chance(0.3) && hold.isHeld()) await hold.renew().catch((error: unknown) => this.#failed(error));
      await this.#release(random, hold);
    } finally {
      pending.isOver = true;
      leftovers.ended(process, request.queue);
    }
  }

  async #withLease(random: SeededRandom, name: string, request: Request): Promise<void> {
    const { leftovers, holds, process } = this.#options;
    leftovers.began(process, request.queue);
    const pending = this.#expectEnd(request);
    try {
      await this.#manager.withLease(name, request.options, async (hold) => {
        pending.isOver = true;
        this.#granted(hold, request);
        await this.#work(random, hold);
        holds.releasing(hold.entry.id);
      });
    } finally {
      pending.isOver = true;
      leftovers.ended(process, request.queue);
    }
  }

  /** A wait ends soon after its time is over, or after it was cancelled. */
  #expectEnd({ queue, options }: Request): Pending {
    const { process, world } = this.#options;
    const pending = { isOver: false };
    const slackMs = Math.max(renewalMinMs, options.ttlMs! * renewalShare) + roundingMs;
    const expect = (withinMs: number, why: string): void => {
      process.node.after(withinMs + slackMs, () => {
        if (pending.isOver) return;
        world.violations.report('wait', `${process.name} still waits for ${queue} although ${why}`);
      });
    };
    options.signal?.addEventListener('abort', () => expect(0, 'it was cancelled'));
    const waitMs = options.wait === 'ttl' ? options.ttlMs! : options.wait;
    if (typeof waitMs === 'number') expect(waitMs, 'its time is over');
    return pending;
  }

  /** All callers of one process share the hold of a handle, so only the first that is given it works under it. */
  async #handle(random: SeededRandom, name: string, request: Request): Promise<void> {
    const handle = this.#manager.requestLease(name);
    await this.#hold(random, request, async () => {
      const hold = await handle.acquire(request.options);
      if (hold === null || this.#shared.has(hold)) return null;
      this.#shared.add(hold);
      return hold;
    });
  }

  #acquireOptions(random: SeededRandom): AcquireOptions {
    const { scenario, process } = this.#options;
    const ttlMs = Math.round(random.between(scenario.ttlMs[0], scenario.ttlMs[1]));
    const fixed = { ttlMs, autoRenew: !random.chance(0.1) };
    const choice = random.next();
    if (choice < 0.2) return { ...fixed, wait: 'none' };
    if (choice < 0.3) return { ...fixed, wait: 'ttl' };
    if (choice < 0.4) return { ...fixed, wait: random.integer(1, 2 * ttlMs) };
    const wait = 'forever';
    if (choice < 0.7) return { ...fixed, wait };
    const stop = new AbortController();
    process.node.after(random.between(1, 2 * ttlMs), () => {
      if (!this.#isSettling) stop.abort(cancelled);
    });
    return { ...fixed, wait, signal: stop.signal };
  }

  #granted(hold: Hold, { mode, permits: most }: Request): void {
    const { holds, process, world } = this.#options;
    const { ttlMs, fencingToken, entry } = hold;
    world.trace.note(process.name, () => `is granted ${entry.name} for ${ttlMs} ms, token ${fencingToken}`);
    holds.granted({ hold, process, mode, permits: most });
    void hold.lost.then((loss) => {
      if (loss !== undefined) holds.lossTold(hold, process.name);
    });
  }

  /** Reads and writes the guarded resource until its time is up, or the hold has ended. */
  async #work(random: SeededRandom, hold: Hold): Promise<void> {
    const { process, resource, world } = this.#options;
    const { coverage } = world;
    const access = { name: hold.entry.name, token: hold.fencingToken, by: process.name };
    const isExclusive = hold.entry.name.startsWith('lease/') || hold.entry.name.startsWith('election/');
    const steps = random.integer(0, 4);
    for (let step = 0; step < steps && !hold.signal.aborted && !this.#isSettling; step += 1) {
      await process.sleep(random.between(1, hold.ttlMs / 2));
      if (!isExclusive || !hold.isHeld()) continue;
      // What is on its way arrives even if the hold has ended meanwhile.
      const lateMs = random.chance(0.1) ? random.between(0, 2 * hold.ttlMs) : 0;
      const value = await this.#atResource(0, () => resource.read(access));
      if (value === undefined) coverage.count('library: a token was rejected at a read');
      else if (!(await this.#atResource(lateMs, () => resource.increment(access, value)))) {
        coverage.count('library: a token was rejected at a write');
      }
    }
  }

  #atResource<T>(lateMs: number, access: () => T): Promise<T> {
    const { process, network, world } = this.#options;
    return new Promise((resolve) => {
      world.schedule.in(lateMs + network.delayMs(), () => {
        const answer = access();
        process.node.deliver(network.delayMs(), () => resolve(answer));
      });
    });
  }

  async #release(random: SeededRandom, hold: Hold): Promise<void> {
    const { holds, process, world } = this.#options;
    if (hold.signal.aborted && random.chance(0.5)) return;
    world.trace.note(process.name, () => `releases ${hold.entry.name}, token ${hold.fencingToken}`);
    holds.releasing(hold.entry.id);
    const lazy = random.chance(0.1);
    if ((await hold.release({ lazy })) && !process.node.stopped) holds.released(hold.entry, process.name);
  }
}

/** The reason of a caller that waits no longer. */
const cancelled = new Error('the caller waits no longer');
