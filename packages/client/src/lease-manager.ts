import type { LeaseBackend } from './backend/lease-backend.ts';
import { createElection } from './election/election.ts';
import type { Election, ElectionOptions } from './election/election.ts';
import { UsageError } from './errors/usage-error.ts';
import { checkTtl } from './leases/acquire-options.ts';
import type { AcquireOptions } from './leases/acquire-options.ts';
import { defaultHolder } from './leases/default-holder.ts';
import { endable } from './leases/endable.ts';
import type { Hold } from './leases/hold.ts';
import type { LeaseHandle } from './leases/lease-handle.ts';
import { leaseInfoOf } from './leases/lease-info.ts';
import type { LeaseInfo } from './leases/lease-info.ts';
import { LeaseKeeper } from './leases/lease-keeper.ts';
import type { LeaseListener } from './leases/lease-listener.ts';
import { watchLease } from './leases/lease-watch.ts';
import type { WatchOptions } from './leases/lease-watch.ts';
import type { LineSpot } from './leases/line-seeker.ts';
import { checkReleaseSignals, closeOnSignals } from './leases/release-signals.ts';
import type { ReleaseSignal } from './leases/release-signals.ts';
import { SharedLease } from './leases/shared-lease.ts';
import { readWriteLock } from './locks/read-write-lock.ts';
import type { ReadWriteLock } from './locks/read-write-lock.ts';
import { semaphore } from './locks/semaphore.ts';
import type { Semaphore } from './locks/semaphore.ts';
import { joinMembership } from './membership/line-membership.ts';
import type { Membership, MembershipOptions } from './membership/membership.ts';
import type { Clock } from './time/clock.ts';
import { ProcessRef } from './time/process-ref.ts';
import { systemClock } from './time/system-clock.ts';

const ttlDefaultMs = 30_000;

export interface LeaseManagerOptions {
  /** Where the leases are kept. The manager does not close it: several may share one. */
  readonly backend: LeaseBackend;
  /** Who holds, as everybody can read. By default made of the machine's name, the process id and something random. */
  readonly holder?: string;
  /** How long a lease lasts after its last renewal, unless something else is asked for; by default 30 seconds. */
  readonly ttlMs?: number;
  readonly clock?: Clock;
  /**
   * By default what is going on keeps the process alive: a hold, a wait, an election that runs, somebody who waits for
   * the next value of a watch, a membership. With true nothing does, and a process that has nothing else to do ends
   * with its leases held. A clock other than `systemClock` makes it true unless it is given.
   */
  readonly unref?: boolean;
  /** False in a passive region: handles of `requestLease` should not hold then, and acquire nothing. To throw is no. */
  readonly eligible?: () => boolean;
  /**
   * At the first of these signals the manager is disposed of, within 20 seconds. Then the process ends by the signal
   * as it would have, unless the program listens for it too; who waits learns of it only after that. A second signal
   * ends the process at once. None by default.
   */
  readonly releaseOn?: readonly ReleaseSignal[];
}

/**
 * Leases of one process. Disposing of it tells who works under a lease to stop, waits a while for what runs in
 * `withLease`, and releases everything. Only then is a ClosedError told to who waits; every later call fails with one.
 */
export interface LeaseManager extends AsyncDisposable {
  readonly holder: string;
  /** A handle, without any I/O. All handles of a name share one hold. */
  requestLease(name: string): LeaseHandle;
  /**
   * A hold of the caller's own: nobody else has it, in this process or another. Waits its turn, first come first
   * served, for ever unless `wait` says otherwise. Rejects with LeaseHeldError (`wait: 'none'`), AcquireTimeoutError,
   * the reason of the signal, UsageError, ClosedError, or BackendError if the backend can't be reached to begin with;
   * an outage while it waits in the line is waited through.
   */
  acquire(name: string, options?: AcquireOptions): Promise<Hold>;
  /** The same, without waiting unless `wait` says otherwise, and with null if somebody else has it. */
  tryAcquire(name: string, options?: AcquireOptions): Promise<Hold | null>;
  /**
   * Runs `work` while the lease is held, and releases it. What the work throws is thrown, and never hidden by a failed
   * release; if the lease was lost before the work had ended well, the LeaseLostError is thrown.
   */
  withLease<T>(name: string, options: AcquireOptions, work: (hold: Hold) => Promise<T> | T): Promise<T>;
  /** Who holds it, or null. It may have changed by the time the answer is here. */
  inspect(name: string): Promise<LeaseInfo | null>;
  /**
   * Who holds it, now and after each change; null while nobody does. Who is slow to ask gets the latest. Outages are
   * waited through. It ends by an error only: the reason of the signal, a ClosedError, or a BackendError that will not
   * pass.
   */
  watch(name: string, options?: WatchOptions): AsyncIterable<LeaseInfo | null>;
  election(name: string, options?: ElectionOptions): Election;
  readWriteLock(name: string): ReadWriteLock;
  semaphore(name: string, permits: number): Semaphore;
  /** Joins a group, and resolves when it has. Rejects as `acquire` does. */
  membership(group: string, options?: MembershipOptions): Promise<Membership>;
  /** Of all holds of this manager. The function takes the listener away again. */
  addListener(listener: LeaseListener): () => void;
  /** Never rejects. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Throws a UsageError if the options can't be right. Nothing is sent before something is acquired. */
export function createLeaseManager(options: LeaseManagerOptions): LeaseManager {
  return new BackedLeaseManager(options);
}

class BackedLeaseManager implements LeaseManager {
  readonly holder: string;
  readonly #keeper: LeaseKeeper;
  readonly #eligible: () => boolean;
  readonly #shared = new Map<string, SharedLease>();
  readonly #ignoreSignals: () => void;

  constructor(options: LeaseManagerOptions) {
    const { backend, holder = defaultHolder(), ttlMs = ttlDefaultMs, clock = systemClock, releaseOn = [] } = options;
    if (typeof holder !== 'string' || holder === '')
      throw new UsageError('a holder must be a string, not an empty one');
    checkTtl(ttlMs, backend.limits);
    checkReleaseSignals(releaseOn);
    this.holder = holder;
    this.#eligible = options.eligible ?? (() => true);
    const processRef = new ProcessRef({ unref: options.unref ?? clock !== systemClock });
    this.#keeper = new LeaseKeeper({ backend, clock, holder, ttlMs, processRef });
    this.#ignoreSignals = closeOnSignals(releaseOn, (onReleased) => this.#keeper.close(onReleased));
  }

  requestLease(name: string): LeaseHandle {
    this.#keeper.throwIfClosing();
    const known = this.#shared.get(name);
    if (known !== undefined) return known;
    const shared = new SharedLease(this.#keeper, this.#spot(name), this.#eligible);
    this.#shared.set(name, shared);
    return shared;
  }

  async acquire(name: string, options: AcquireOptions = {}): Promise<Hold> {
    return await this.#keeper.acquire(this.#spot(name), options, { defaultWait: 'forever' });
  }

  async tryAcquire(name: string, options: AcquireOptions = {}): Promise<Hold | null> {
    return await this.#keeper.tryAcquire(this.#spot(name), options, { defaultWait: 'none' });
  }

  async withLease<T>(name: string, options: AcquireOptions, work: (hold: Hold) => Promise<T> | T): Promise<T> {
    return await this.#keeper.withHold(this.#spot(name), options, work);
  }

  async inspect(name: string): Promise<LeaseInfo | null> {
    return leaseInfoOf(name, await this.#keeper.list(this.#spot(name)));
  }

  watch(name: string, options: WatchOptions = {}): AsyncIterable<LeaseInfo | null> {
    const spot = this.#spot(name);
    return endable({ signal: options.signal, processRef: this.#keeper.processRef }, (signal) =>
      watchLease(this.#keeper, spot, { signal }),
    );
  }

  election(name: string, options: ElectionOptions = {}): Election {
    this.#keeper.throwIfClosing();
    return createElection(this.#keeper, name, options);
  }

  readWriteLock(name: string): ReadWriteLock {
    this.#keeper.throwIfClosing();
    return readWriteLock(this.#keeper, name);
  }

  semaphore(name: string, permits: number): Semaphore {
    this.#keeper.throwIfClosing();
    return semaphore(this.#keeper, name, permits);
  }

  async membership(group: string, options: MembershipOptions = {}): Promise<Membership> {
    await this.#keeper.whileOpen();
    return await joinMembership(this.#keeper, group, options);
  }

  addListener(listener: LeaseListener): () => void {
    return this.#keeper.events.add(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#keeper.close(this.#ignoreSignals);
  }

  /** Throws a UsageError if there can be no such name. */
  #spot(name: string): LineSpot {
    const spot: LineSpot = { line: `lease/${name}`, name, mode: 'exclusive', permits: 1 };
    this.#keeper.check(spot);
    return spot;
  }
}
