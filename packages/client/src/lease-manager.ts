import type { LeaseBackend } from './backend/lease-backend.ts';
import { createElection } from './election/election.ts';
import type { Election, ElectionOptions } from './election/election.ts';
import { UsageError } from './errors/usage-error.ts';
import { checkTtl } from './leases/acquire-options.ts';
import type { AcquireOptions } from './leases/acquire-options.ts';
import { defaultHolder } from './leases/default-holder.ts';
import { cancellableIterator } from './leases/cancellable-iterator.ts';
import type { Hold } from './leases/hold.ts';
import type { LeaseHandle } from './leases/lease-handle.ts';
import { leaseInfoOf } from './leases/lease-info.ts';
import type { LeaseInfo } from './leases/lease-info.ts';
import { LeaseRegistry } from './leases/lease-registry.ts';
import type { LeaseListener } from './leases/lease-listener.ts';
import { watchLease } from './leases/lease-watch.ts';
import type { WatchOptions } from './leases/lease-watch.ts';
import type { QueueTarget } from './leases/queue-target.ts';
import { checkReleaseSignals, closeOnSignals } from './leases/release-signals.ts';
import type { ReleaseSignal } from './leases/release-signals.ts';
import { SharedLease } from './leases/shared-lease.ts';
import { readWriteLock } from './locks/read-write-lock.ts';
import type { ReadWriteLock } from './locks/read-write-lock.ts';
import { semaphore } from './locks/semaphore.ts';
import type { Semaphore } from './locks/semaphore.ts';
import { joinMembership } from './membership/queue-membership.ts';
import type { Membership, MembershipOptions } from './membership/membership.ts';
import type { Random } from './random/random.ts';
import { systemRandom } from './random/system-random.ts';
import type { Clock } from './time/clock.ts';
import { ProcessRef } from './time/process-ref.ts';
import { systemClock } from './time/system-clock.ts';

const ttlDefaultMs = 30_000;

export interface LeaseManagerOptions {
  /** Where the leases are kept. The manager does not close it: several may share one. */
  readonly backend: LeaseBackend;
  /** The holder's name, which all clients can read. By default the host name, the process id and a random part. */
  readonly holder?: string;
  /** The default for how long a lease lasts after its last renewal: 30 seconds unless given. */
  readonly ttlMs?: number;
  readonly clock?: Clock;
  /**
   * By default these keep the process alive: a hold, a wait, a running election, a pending read of a watch, a
   * membership. With true nothing does, and a process without other work ends with its leases held. With a clock other
   * than `systemClock` the default is true.
   */
  readonly unref?: boolean;
  /** Returns false in a passive region: handles of `requestLease` acquire nothing then. An error counts as false. */
  readonly eligible?: () => boolean;
  /**
   * At the first of these signals the manager is disposed of, within 20 seconds. Then the process ends by the signal,
   * unless the program listens for it too. Waiting callers get a ClosedError only after that. A second signal ends the
   * process at once. None by default.
   */
  readonly releaseOn?: readonly ReleaseSignal[];
}

/**
 * The leases of one process. Disposing of it aborts the signals of its holds, waits up to ten seconds for work in
 * `withLease`, and releases everything. Only then do waiting callers get a ClosedError; every later call fails with
 * one.
 */
export interface LeaseManager extends AsyncDisposable {
  readonly holder: string;
  /** Returns a handle without any I/O. All handles of a name share one hold. */
  requestLease(name: string): LeaseHandle;
  /**
   * Returns a hold that no other caller has, in this process or another. Waits in first-come order, forever unless
   * `wait` says otherwise. Rejects with LeaseHeldError (`wait: 'none'`), AcquireTimeoutError, the reason of the signal,
   * UsageError, ClosedError, or BackendError if the backend can't be reached at first. An outage while it waits in the
   * queue does not end the wait.
   */
  acquire(name: string, options?: AcquireOptions): Promise<Hold>;
  /** The same, but does not wait unless `wait` says so, and returns null if the lease is held. */
  tryAcquire(name: string, options?: AcquireOptions): Promise<Hold | null>;
  /**
   * Runs `work` while the lease is held, and releases it. An error of the work is thrown, and never hidden by a failed
   * release. If the lease was lost before the work succeeded, the LeaseLostError is thrown.
   */
  withLease<T>(name: string, options: AcquireOptions, work: (hold: Hold) => Promise<T> | T): Promise<T>;
  /** The current holder, or null. It may have changed by the time the answer arrives. */
  inspect(name: string): Promise<LeaseInfo | null>;
  /**
   * The holder now and after each change; null while there is none. A slow consumer gets only the latest. An outage
   * does not end it. It ends only by an error: the reason of the signal, a ClosedError, or a BackendError that retries
   * do not solve.
   */
  watch(name: string, options?: WatchOptions): AsyncIterable<LeaseInfo | null>;
  election(name: string, options?: ElectionOptions): Election;
  readWriteLock(name: string): ReadWriteLock;
  semaphore(name: string, permits: number): Semaphore;
  /** Joins a group. Rejects as `acquire` does. */
  membership(group: string, options?: MembershipOptions): Promise<Membership>;
  /** Listens to all holds of this manager. Returns a function that removes the listener. */
  addListener(listener: LeaseListener): () => void;
  /** Never rejects. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Throws a UsageError for invalid options. Nothing is sent before the first call. */
export function createLeaseManager(options: LeaseManagerOptions): LeaseManager {
  return new BackedLeaseManager(options, systemRandom);
}

/** Its parts come as arguments, so that a simulation can run it. Programs call `createLeaseManager`. */
export class BackedLeaseManager implements LeaseManager {
  readonly holder: string;
  readonly #registry: LeaseRegistry;
  readonly #eligible: () => boolean;
  readonly #shared = new Map<string, SharedLease>();
  readonly #ignoreSignals: () => void;

  constructor(options: LeaseManagerOptions, random: Random) {
    const { backend, ttlMs = ttlDefaultMs, clock = systemClock, releaseOn = [] } = options;
    const { holder = defaultHolder(random) } = options;
    if (typeof holder !== 'string' || holder === '')
      throw new UsageError('a holder must be a string, not an empty one');
    checkTtl(ttlMs, backend.limits);
    checkReleaseSignals(releaseOn);
    this.holder = holder;
    this.#eligible = options.eligible ?? (() => true);
    const processRef = new ProcessRef({ unref: options.unref ?? clock !== systemClock });
    this.#registry = new LeaseRegistry({ backend, clock, random, holder, ttlMs, processRef });
    this.#ignoreSignals = closeOnSignals(releaseOn, (onReleased) => this.#registry.close(onReleased));
  }

  requestLease(name: string): LeaseHandle {
    this.#registry.throwIfClosing();
    const known = this.#shared.get(name);
    if (known !== undefined) return known;
    const shared = new SharedLease(this.#registry, this.#target(name), this.#eligible);
    this.#shared.set(name, shared);
    return shared;
  }

  async acquire(name: string, options: AcquireOptions = {}): Promise<Hold> {
    return await this.#registry.acquire(this.#target(name), options, { defaultWait: 'forever' });
  }

  async tryAcquire(name: string, options: AcquireOptions = {}): Promise<Hold | null> {
    return await this.#registry.tryAcquire(this.#target(name), options, { defaultWait: 'none' });
  }

  async withLease<T>(name: string, options: AcquireOptions, work: (hold: Hold) => Promise<T> | T): Promise<T> {
    return await this.#registry.withHold(this.#target(name), options, work);
  }

  async inspect(name: string): Promise<LeaseInfo | null> {
    return leaseInfoOf(name, await this.#registry.list(this.#target(name)));
  }

  watch(name: string, options: WatchOptions = {}): AsyncIterable<LeaseInfo | null> {
    const target = this.#target(name);
    return cancellableIterator({ signal: options.signal, processRef: this.#registry.processRef }, (signal) =>
      watchLease(this.#registry, target, { signal }),
    );
  }

  election(name: string, options: ElectionOptions = {}): Election {
    this.#registry.throwIfClosing();
    return createElection(this.#registry, name, options);
  }

  readWriteLock(name: string): ReadWriteLock {
    this.#registry.throwIfClosing();
    return readWriteLock(this.#registry, name);
  }

  semaphore(name: string, permits: number): Semaphore {
    this.#registry.throwIfClosing();
    return semaphore(this.#registry, name, permits);
  }

  async membership(group: string, options: MembershipOptions = {}): Promise<Membership> {
    await this.#registry.whileOpen();
    return await joinMembership(this.#registry, group, options);
  }

  addListener(listener: LeaseListener): () => void {
    return this.#registry.events.add(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#registry.close(this.#ignoreSignals);
  }

  /** Throws a UsageError for an invalid name. */
  #target(name: string): QueueTarget {
    const target: QueueTarget = { queue: `lease/${name}`, name, mode: 'exclusive', permits: 1 };
    this.#registry.check(target);
    return target;
  }
}
