import type { Command, CommandResponse, Lease, LeaseChange, LeaseAt } from '@tenure/core';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { sleep } from '../time/sleep.ts';
import type { ClusterClock } from './cluster-clock.ts';
import type { LeaseClock } from './lease-clock.ts';
import { LeaderLeaseTracker, type DueDate } from './leader-lease-tracker.ts';

/** What the keeper must know of the replicated state. */
export interface LeaseState {
  lease(id: bigint): Lease | undefined;
  /** A stable view of all leases, iterated in slices while entries go on being applied. */
  leases(): Iterable<Lease>;
  /** Cluster time at which the lease is dated, or undefined while it is live in the current epoch. */
  deadlineOf(lease: Lease): number | undefined;
  keyCountOfLease(id: bigint): number;
}

export interface LeaseKeeperMetrics {
  /** One lease expired, `lagMs` after its deadline. */
  leaseExpired(lagMs: number): void;
  /** Renewals that were acknowledged. */
  leaseRenewed(count?: number): void;
}

export interface LeaseKeeperOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly leaseClock: LeaseClock;
  readonly clusterClock: ClusterClock;
  readonly state: LeaseState;
  /** Proposes through the log; rejects if the outcome is unknown or the queue is full. */
  readonly propose: (command: Command) => Promise<CommandResponse>;
  readonly metrics: LeaseKeeperMetrics;
  /** The longest sleep of the timer. */
  readonly maxSleepMs: number;
  /** Whether this server still has the right to act for leases. Without it, the right is not timed. */
  readonly mayAct?: () => boolean;
}

/** One entry expires at most this many leases, and about this many keys, so that one apply stays short. */
const maxExpiriesPerEntry = 500;
const maxExpiredKeysPerEntry = 5_000;
/** One checkpoint entry holds at most this many dates: 64 KiB at 22 bytes each. */
const maxDatesPerEntry = 2_900;
/** One entry makes at most this many leases live again. */
const maxRenewalsPerEntry = 5_000;
/** How long a refused proposal of ours waits until it is made anew. */
const retryDelayMs = 50;
/** A slice of building the tracker handles this many leases, then leaves the event loop to others. */
const buildSliceLeases = 2_000;
/** How often a poll phase with a stall in it is followed by another one, before what is due is taken all the same. */
const maxPollsPerDecision = 5;

/**
 * Keeps the leases of the server that leads: owns the only timer for them, answers renewals, and proposes what is
 * due. Nothing is removed here: what is due is proposed, and goes when the entry is applied (rule 4). Until the
 * leases of earlier epochs are all taken over, nothing expires, but renewals are answered.
 */
export class LeaseKeeper {
  readonly tracker: LeaderLeaseTracker;
  readonly #options: LeaseKeeperOptions;
  readonly #waiters = new Map<bigint, ((ttlMs: number | Error) => void)[]>();
  #renewals: bigint[] = [];
  #renewalsOut = false;
  #complete = false;
  #stopped = false;
  #deciding = false;
  #wakeAtMs = Infinity;
  #cancelTimer: () => void = () => {};

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
    this.tracker = new LeaderLeaseTracker(options.random.bytes(4).readUInt32LE());
  }

  /** Whether the leases of earlier epochs have all been taken over. */
  get complete(): boolean {
    return this.#complete;
  }

  /** Takes over the leases of earlier epochs, in slices. Resolves when expiry may begin. */
  async build(): Promise<void> {
    let inSlice = 0;
    for (const { id } of this.#options.state.leases()) {
      this.#adopt(id);
      inSlice += 1;
      if (inSlice < buildSliceLeases) continue;
      inSlice = 0;
      await new Promise<void>((resolve) => this.#options.clock.afterPoll(resolve));
      if (this.#stopped) return;
    }
    this.#complete = true;
    this.#arm();
  }

  /** What an applied entry did to leases. */
  applied(changes: readonly LeaseChange[]): void {
    if (changes.length === 0) return;
    const nowMs = this.#options.leaseClock.nowMs();
    for (const change of changes) {
      switch (change.kind) {
        case 'granted':
          this.tracker.applyGranted(change.lease, nowMs);
          break;
        case 'renewed':
          this.tracker.applyRenewed(change.lease, nowMs);
          break;
        case 'dated':
          this.tracker.applyDated(change.lease);
          break;
        case 'removed':
          this.#removed(change.id, change.cause, nowMs);
          break;
      }
    }
    this.#arm();
  }

  /**
   * Renews a lease: its granted TTL in milliseconds, or 0 if it does not exist. A number at once where memory alone
   * decides; a promise where the log does, which rejects if the outcome stays unknown.
   */
  renew(id: bigint): number | Promise<number> {
    let renewal = this.tracker.renew(id, this.#options.leaseClock.nowMs());
    if (renewal === 'unknown') {
      if (this.#complete || !this.#adopt(id)) return 0;
      renewal = this.tracker.renew(id, this.#options.leaseClock.nowMs());
    }
    if (typeof renewal === 'number') {
      this.#options.metrics.leaseRenewed();
      return renewal;
    }
    if (renewal === 'propose') {
      this.#renewals.push(id);
      this.#sendRenewals();
    }
    return new Promise((resolve, reject) => {
      const waiter = (outcome: number | Error): void =>
        typeof outcome === 'number' ? resolve(outcome) : reject(outcome);
      const waiters = this.#waiters.get(id);
      if (waiters === undefined) this.#waiters.set(id, [waiter]);
      else waiters.push(waiter);
    });
  }

  /** What is left of a lease, at least 1 while it exists, since 0 means gone; undefined if it does not exist. */
  remainingMs(id: bigint): number | undefined {
    const deadlineMs = this.deadlineMs(id);
    if (deadlineMs === undefined) return undefined;
    return Math.max(1, Math.ceil(deadlineMs - this.#options.leaseClock.nowMs()));
  }

  /** When a lease ends unless it is renewed, on the lease clock; undefined if it does not exist. */
  deadlineMs(id: bigint): number | undefined {
    const deadlineMs = this.tracker.deadlineMs(id);
    if (deadlineMs !== undefined || this.#complete || !this.#adopt(id)) return deadlineMs;
    return this.tracker.deadlineMs(id);
  }

  /** Ends all timers and fails all renewals that wait. */
  stop(reason: Error): void {
    this.#stopped = true;
    this.#cancelTimer();
    for (const id of [...this.#waiters.keys()]) this.#settle(id, reason);
  }

  #adopt(id: bigint): boolean {
    const { state, clusterClock } = this.#options;
    const lease = state.lease(id);
    if (lease === undefined) return false;
    const dateMs = state.deadlineOf(lease);
    if (dateMs !== undefined) this.tracker.adopt(lease, clusterClock.toLeaseMs(dateMs));
    return this.tracker.has(id);
  }

  #removed(id: bigint, cause: 'revoked' | 'expired', nowMs: number): void {
    const tracked = this.tracker.applyRemoved(id);
    if (tracked !== undefined && cause === 'expired') {
      this.#options.metrics.leaseExpired(nowMs - tracked.deadlineMs);
    }
    this.#settle(id, 0);
  }

  #settle(id: bigint, outcome: number | Error): void {
    const waiters = this.#waiters.get(id);
    if (waiters === undefined) return;
    this.#waiters.delete(id);
    for (const waiter of waiters) waiter(outcome);
  }

  #arm(): void {
    if (!this.#complete || this.#stopped || this.#deciding) return;
    const { clock, leaseClock, maxSleepMs } = this.#options;
    const nextMs = this.tracker.nextDueMs();
    if (nextMs === undefined) return;
    const nowMs = leaseClock.nowMs();
    const wakeAtMs = Math.min(Math.max(nextMs, nowMs), nowMs + maxSleepMs);
    if (wakeAtMs >= this.#wakeAtMs) return;
    this.#cancelTimer();
    this.#wakeAtMs = wakeAtMs;
    this.#cancelTimer = clock.after(Math.ceil(wakeAtMs - nowMs), () => {
      this.#wakeAtMs = Infinity;
      this.#deciding = true;
      void this.#decide();
    });
  }

  /**
   * Resolves when what had reached the sockets has been read, with the time up to which that is so. Never expire
   * straight from a timer or from the end of an append (rule 8): the process may have stalled just before, and in the
   * poll phase itself. What came due only while the sockets were read waits for the next decision, since a renewal of
   * it may have come too late to be read in this one.
   */
  async #readSockets(): Promise<number> {
    const { clock, leaseClock } = this.#options;
    for (let polls = 1; ; polls += 1) {
      const stalls = leaseClock.stallCount();
      const readUpToMs = leaseClock.nowMs();
      await new Promise<void>((resolve) => clock.afterPoll(resolve));
      if (leaseClock.stallCount() === stalls || polls === maxPollsPerDecision) return readUpToMs;
    }
  }

  async #decide(): Promise<void> {
    try {
      for (;;) {
        const readUpToMs = await this.#readSockets();
        if (this.#stopped || this.#options.mayAct?.() === false) break;
        const due = this.tracker.takeDue(readUpToMs, maxDatesPerEntry);
        if (due.expire.length === 0 && due.date.length === 0) break;
        if (due.date.length > 0) await this.#date(due.date);
        if (due.expire.length > 0) await this.#expireInChunks(due.expire);
      }
    } finally {
      this.#deciding = false;
      this.#arm();
    }
  }

  async #expireInChunks(leases: readonly LeaseAt[]): Promise<void> {
    let chunk: LeaseAt[] = [];
    let keys = 0;
    for (const lease of leases) {
      const attached = this.#options.state.keyCountOfLease(lease.id);
      if (chunk.length > 0 && (chunk.length >= maxExpiriesPerEntry || keys + attached > maxExpiredKeysPerEntry)) {
        await this.#expire(chunk);
        chunk = [];
        keys = 0;
      }
      chunk.push(lease);
      keys += attached;
    }
    await this.#expire(chunk);
  }

  async #expire(leases: readonly LeaseAt[]): Promise<void> {
    await this.#proposeOrBackOff({ kind: 'expireLeases', leases });
    // Those that went are known from the changes of the entry; whatever is still here is tried again.
    this.tracker.expiryFailed(leases);
    for (const { id } of leases) if (this.tracker.has(id)) this.#retryWaiters(id);
  }

  async #date(dates: readonly DueDate[]): Promise<void> {
    const { clusterClock } = this.#options;
    const leases = dates.map(({ id, renewIndex, deadlineMs }) => {
      return { id, renewIndex, deadlineMs: clusterClock.toClusterMs(deadlineMs) };
    });
    await this.#proposeOrBackOff({ kind: 'checkpointLeases', leases });
    this.tracker.datingFailed(dates);
  }

  async #proposeOrBackOff(command: Command): Promise<void> {
    if (this.#stopped) return;
    try {
      await this.#options.propose(command);
    } catch {
      // The queue is full or the server is stopping. What is due stays due; it is proposed anew a little later.
      await sleep(this.#options.clock, retryDelayMs);
    }
  }

  /** The expiry did not take the lease, so its waiting renewals are renewals like any other. */
  #retryWaiters(id: bigint): void {
    const waiters = this.#waiters.get(id);
    if (waiters === undefined) return;
    this.#waiters.delete(id);
    const outcome = this.renew(id);
    const tell = (result: number | Error): void => {
      for (const waiter of waiters) waiter(result);
    };
    if (typeof outcome === 'number') tell(outcome);
    else outcome.then(tell, tell);
  }

  /** One entry at a time makes leases live again; what arrives while it is out goes into the next. */
  #sendRenewals(): void {
    if (this.#renewalsOut) return;
    this.#renewalsOut = true;
    this.#options.clock.afterPoll(() => void this.#drainRenewals());
  }

  async #drainRenewals(): Promise<void> {
    while (this.#renewals.length > 0 && !this.#stopped) {
      const ids = this.#renewals.splice(0, maxRenewalsPerEntry);
      try {
        const response = await this.#options.propose({ kind: 'renewLeases', ids });
        if (response.kind !== 'renewLeases') throw new Error(`a renewal was refused: ${JSON.stringify(response)}`);
        this.#renewedByLog(response.renewed);
        for (const id of ids) this.#settle(id, 0);
      } catch (error) {
        this.tracker.renewalFailed(ids);
        for (const id of ids) this.#settle(id, error instanceof Error ? error : new Error(String(error)));
        this.#arm();
      }
    }
    this.#renewalsOut = false;
  }

  #renewedByLog(ids: readonly bigint[]): void {
    const nowMs = this.#options.leaseClock.nowMs();
    for (const id of ids) {
      const tracked = this.tracker.get(id);
      if (tracked === undefined) continue;
      const lease = this.#options.state.lease(id);
      if (tracked.state === 'renewing' && lease !== undefined) this.tracker.applyRenewed(lease, nowMs);
      this.#settle(id, tracked.ttlMs);
    }
    this.#options.metrics.leaseRenewed(ids.length);
    // The state may say nothing of these (they were live for it, since no checkpoint had come through), and then no
    // change of an entry wakes the timer for them.
    this.#arm();
  }
}
