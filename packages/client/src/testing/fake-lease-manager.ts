import type {
  Claim,
  EnterOptions,
  Entry,
  EntryKey,
  LeaseBackend,
  QueueWatch,
  Renewal,
} from '../backend/lease-backend.ts';
import type { Election, ElectionOptions } from '../election/election.ts';
import { BackendError } from '../errors/backend-error.ts';
import { createLeaseManager } from '../lease-manager.ts';
import type { LeaseManager } from '../lease-manager.ts';
import type { AcquireOptions } from '../leases/acquire-options.ts';
import type { Hold } from '../leases/hold.ts';
import type { LeaseHandle } from '../leases/lease-handle.ts';
import { LeaseHold } from '../leases/lease-hold.ts';
import type { LeaseInfo } from '../leases/lease-info.ts';
import type { LeaseListener } from '../leases/lease-listener.ts';
import type { WatchOptions } from '../leases/lease-watch.ts';
import type { ReadWriteLock } from '../locks/read-write-lock.ts';
import type { Semaphore } from '../locks/semaphore.ts';
import type { Membership, MembershipOptions } from '../membership/membership.ts';
import { memoryBackend } from '../memory/memory-backend.ts';
import type { Signal } from '../time/signal.ts';
import { FakeClock } from './fake-clock.ts';

export interface FakeLeaseManagerOptions {
  readonly holder?: string;
  readonly ttlMs?: number;
  /** Time passes only by it. */
  readonly clock?: FakeClock;
}

/** Practically unlimited: a lease held elsewhere stays so until the test changes it. */
const elsewhereTtlMs = Number.MAX_SAFE_INTEGER / 4;
const { signal } = new AbortController();

/**
 * A real lease manager on a memory backend of its own. The test decides which leases are held, which are lost and why,
 * and when the backend can't be reached. In all else it behaves like any other manager.
 */
export class FakeLeaseManager implements LeaseManager {
  readonly clock: FakeClock;
  readonly #backend: PartitionedBackend;
  readonly #manager: LeaseManager;
  readonly #holds = new Set<Hold>();

  constructor(options: FakeLeaseManagerOptions = {}) {
    this.clock = options.clock ?? new FakeClock();
    this.#backend = new PartitionedBackend(memoryBackend({ clock: this.clock }));
    const { holder = 'fake', ttlMs = 30_000 } = options;
    this.#manager = createLeaseManager({ backend: this.#backend, clock: this.clock, holder, ttlMs });
    this.#manager.addListener({
      afterAcquire: (hold) => this.#holds.add(hold),
      beforeRelease: (hold) => this.#holds.delete(hold),
      afterLoss: (hold) => this.#holds.delete(hold),
    });
  }

  /** Makes this process the holder, by its handle, and removes any other holder. */
  async markHeld(name: string): Promise<Hold> {
    const handle = this.requestLease(name);
    if (!handle.isHeld()) await this.#empty(name);
    const hold = await handle.acquire();
    if (hold === null) throw new Error(`the lease ${JSON.stringify(name)} could not be marked as held`);
    return hold;
  }

  /** Gives the lease to another holder. Holds of this process are lost at once, as `stolen`. */
  async markHeldElsewhere(name: string, holder = 'elsewhere'): Promise<void> {
    await this.#empty(name);
    const fixed = { mode: 'exclusive', permits: 1, ttlMs: elsewhereTtlMs, data: '' } as const;
    const claim = { name: queueOf(name), id: crypto.randomUUID(), holder, ...fixed };
    await this.#backend.whole.enter(claim, { onlyIfHolds: false, signal });
    this.#lose(name, 'stolen');
  }

  /** Makes the lease free. Holds of this process are lost at once, as `expired`. */
  async expire(name: string): Promise<void> {
    await this.#empty(name);
    this.#lose(name, 'expired');
  }

  /**
   * From now on the backend answers nothing. As time passes, holds are lost as `unreachable`. Gives the function that
   * heals it.
   */
  partition(): () => void {
    this.#backend.isPartitioned = true;
    return () => {
      this.#backend.isPartitioned = false;
    };
  }

  get holder(): string {
    return this.#manager.holder;
  }

  requestLease(name: string): LeaseHandle {
    return this.#manager.requestLease(name);
  }

  acquire(name: string, options?: AcquireOptions): Promise<Hold> {
    return this.#manager.acquire(name, options);
  }

  tryAcquire(name: string, options?: AcquireOptions): Promise<Hold | null> {
    return this.#manager.tryAcquire(name, options);
  }

  withLease<T>(name: string, options: AcquireOptions, work: (hold: Hold) => Promise<T> | T): Promise<T> {
    return this.#manager.withLease(name, options, work);
  }

  inspect(name: string): Promise<LeaseInfo | null> {
    return this.#manager.inspect(name);
  }

  watch(name: string, options?: WatchOptions): AsyncIterable<LeaseInfo | null> {
    return this.#manager.watch(name, options);
  }

  election(name: string, options?: ElectionOptions): Election {
    return this.#manager.election(name, options);
  }

  readWriteLock(name: string): ReadWriteLock {
    return this.#manager.readWriteLock(name);
  }

  semaphore(name: string, permits: number): Semaphore {
    return this.#manager.semaphore(name, permits);
  }

  membership(group: string, options?: MembershipOptions): Promise<Membership> {
    return this.#manager.membership(group, options);
  }

  addListener(listener: LeaseListener): () => void {
    return this.#manager.addListener(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#manager[Symbol.asyncDispose]();
  }

  /** Removes all entries from the queue except the waiting ones of this process. */
  async #empty(name: string): Promise<void> {
    const queue = await this.#backend.whole.list(queueOf(name), signal);
    const mine = new Set([...this.#holds].map(({ entry }) => entry.id));
    const holding = queue.filter(({ id, holder }) => mine.has(id) || holder !== this.holder);
    for (const entry of holding) await this.#backend.whole.leave(entry, signal);
  }

  #lose(name: string, reason: 'stolen' | 'expired'): void {
    for (const hold of this.#holds) {
      if (hold.entry.name === queueOf(name) && hold instanceof LeaseHold) hold.lose(reason);
    }
  }
}

/** A backend that can be cut off. */
class PartitionedBackend implements LeaseBackend {
  readonly whole: LeaseBackend;
  isPartitioned = false;

  constructor(whole: LeaseBackend) {
    this.whole = whole;
  }

  get kind(): string {
    return 'fake';
  }

  get limits(): LeaseBackend['limits'] {
    return this.whole.limits;
  }

  get pollIntervalMs(): number {
    return this.whole.pollIntervalMs;
  }

  enter(claim: Claim, options: EnterOptions): ReturnType<LeaseBackend['enter']> {
    return this.#reached(() => this.whole.enter(claim, options));
  }

  list(name: string, ending: Signal): Promise<readonly Entry[]> {
    return this.#reached(() => this.whole.list(name, ending));
  }

  renew(renewals: readonly Renewal[], ending: Signal): Promise<readonly boolean[]> {
    return this.#reached(() => this.whole.renew(renewals, ending));
  }

  leave(entry: EntryKey, ending: Signal): Promise<boolean> {
    return this.#reached(() => this.whole.leave(entry, ending));
  }

  update(entry: EntryKey, data: string, ending: Signal): Promise<boolean> {
    return this.#reached(() => this.whole.update(entry, data, ending));
  }

  watch(name: string, onChange: () => void): QueueWatch {
    return this.whole.watch(name, onChange);
  }

  close(): Promise<void> {
    return this.whole.close();
  }

  async #reached<Value>(call: () => Promise<Value>): Promise<Value> {
    if (this.isPartitioned) throw new BackendError(this.kind, 'unavailable', 'the test has cut it off');
    return call();
  }
}

function queueOf(name: string): string {
  return `lease/${name}`;
}
