import type { Command, CommandResponse, Lease, LeaseChange, LeaseAt } from '@tenure/core';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import type { ClusterClock } from './cluster-clock.ts';
import type { LeaseClock } from './lease-clock.ts';
import { DeadlineTracker, type DueCheckpoint } from './deadline-tracker.ts';

/** What the lessor reads of the replicated state. */
export interface LeaseState {
  lease(id: bigint): Lease | undefined;
  /** A stable view of all leases, iterated in slices while entries continue to be applied. */
  leases(): Iterable<Lease>;
  /** Cluster time of the lease's checkpointed deadline; undefined while only the leader's memory has its deadline. */
  deadlineOf(lease: Lease): number | undefined;
  keyCountOfLease(id: bigint): number;
}

export interface LessorMetrics {
  /** One lease expired, `lagMs` after its deadline. */
  leaseExpired(lagMs: number): void;
  /** Renewals that were acknowledged. */
  leaseRenewed(count?: number): void;
}

/** Commands that only the leader proposes. */
export type LessorCommand = Extract<Command, { kind: 'expireLeases' | 'checkpointLeases' | 'renewLeases' }>;
/** What the lessor waits for: the next slice of its start, a decision about due leases, or a batch of renewals. */
export type PollPurpose = 'build' | 'expiry' | 'renewals';

/** What the lessor decides. It does no I/O itself. */
export type LessorDecision =
  /** Append the command in the epoch that this server leads, or never; then call `proposalEnded`. */
  | { readonly kind: 'propose'; readonly epoch: number; readonly command: LessorCommand }
  /** Let the event loop read all sockets once; then call `polled`. */
  | { readonly kind: 'poll'; readonly epoch: number; readonly purpose: PollPurpose }
  /**
   * Answer the waiting renewals of this lease: with its granted TTL in milliseconds, with 0 if the lease is gone, or
   * with an error if the outcome is unknown.
   */
  | { readonly kind: 'answer'; readonly id: bigint; readonly outcome: number | Error };

export interface LessorOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly random: Random;
  /** The epoch in which this server leads. */
  readonly epoch: number;
  readonly leaseClock: LeaseClock;
  readonly clusterClock: ClusterClock;
  readonly state: LeaseState;
  readonly metrics: LessorMetrics;
  /** The longest interval between two checks of the deadlines. */
  readonly maxSleepMs: number;
  /** Receives the decisions, in the order in which they must be carried out. */
  readonly decisions: { push(decision: LessorDecision): unknown };
}

/** One entry expires at most this many leases, and about this many keys, so that one apply stays short. */
const maxExpiriesPerEntry = 500;
const maxExpiredKeysPerEntry = 5_000;
/** One checkpoint entry holds at most this many deadlines: 64 KiB at 22 bytes each. */
const maxCheckpointsPerEntry = 2_900;
/** One entry renews at most this many leases. */
const maxRenewalsPerEntry = 5_000;
/** The delay before a retry after the log refused a proposal. */
const retryDelayMs = 50;
/** A slice of the takeover handles this many leases, then the event loop runs. */
const buildSliceLeases = 2_000;
/** A poll phase with a stall in it is repeated at most this often. */
const maxPollsPerDecision = 5;

/**
 * The leases of the leader: it renews them, and decides which to checkpoint and which to expire. It is told facts (an
 * entry was applied, time has passed, a proposal ended) and puts decisions into `decisions`; it has no timer, no log
 * and no promise.
 *
 * A lease ends when an entry that expires or revokes it is applied, never before (rule 4). No lease expires before all
 * leases of earlier epochs are taken over, but renewals are answered meanwhile.
 */
export class Lessor {
  readonly tracker: DeadlineTracker;
  readonly #options: LessorOptions;
  /** The leases with renewals that wait for an answer. */
  readonly #waiting = new Set<bigint>();
  /** Leases of earlier epochs that are still to be taken over; undefined once all are. */
  #toBuild: Iterator<Lease> | undefined;
  #complete = false;
  #stopped = false;
  /**
   * `idle`: waits for `wakeAtMs`. `pausing`: the same, with commands left. Otherwise a decision is being carried out.
   */
  #phase: 'idle' | 'reading' | 'proposing' | 'pausing' = 'idle';
  #wakeAtMs = Infinity;
  /** The due leases that are not proposed yet. */
  #checkpoints: readonly DueCheckpoint[] = [];
  #expiries: readonly LeaseAt[] = [];
  /** The poll in progress: its count for this decision, the previous reading, and the number of stalls until then. */
  #polls = 0;
  #readUpToMs = 0;
  #stallsBefore = 0;
  #renewals: bigint[] = [];
  #renewalsOut = false;

  constructor(options: LessorOptions) {
    this.#options = options;
    this.tracker = new DeadlineTracker(options.random.bytes(4).readUInt32LE());
  }

  /** When `timePassed` must be called, by the monotonic clock; Infinity while it need not be. */
  get wakeAtMs(): number {
    return this.#stopped ? Infinity : this.#wakeAtMs;
  }

  /** Begins to take over the leases of earlier epochs, in slices. Expiry begins afterwards. */
  begin(): void {
    this.#toBuild = this.#options.state.leases()[Symbol.iterator]();
    this.#build();
  }

  /** The changes of leases in an applied entry. */
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
        case 'checkpointed':
          this.tracker.applyCheckpointed(change.lease);
          break;
        case 'removed':
          this.#removed(change.id, change.cause, nowMs);
          break;
      }
    }
    this.#arm();
  }

  /**
   * Renews a lease: its granted TTL in milliseconds, or 0 if it does not exist. `waits` where the log decides: then a
   * decision `answer` follows.
   */
  renew(id: bigint): number | 'waits' {
    const outcome = this.#renew(id);
    if (outcome === 'waits') this.#waiting.add(id);
    return outcome;
  }

  /** To be called at `wakeAtMs`. May be called at any time. */
  timePassed(): void {
    if (this.#stopped || this.#options.clock.monotonicMs() < this.#wakeAtMs) return;
    this.#wakeAtMs = Infinity;
    if (this.#phase === 'idle') this.#readSockets();
    else if (this.#phase === 'pausing') this.#proposeNext();
  }

  /** The event loop has read all sockets since the decision `poll` with this purpose. */
  polled(purpose: PollPurpose): void {
    if (this.#stopped) return;
    if (purpose === 'build') this.#build();
    else if (purpose === 'renewals') this.#proposeRenewals();
    else this.#socketsRead();
  }

  /** A proposal was applied, with this response; or it was refused, or its outcome is not known. */
  proposalEnded(command: LessorCommand, outcome: CommandResponse | Error): void {
    if (this.#stopped) return;
    if (command.kind === 'renewLeases') {
      this.#renewalsEnded(command.ids, outcome);
      return;
    }
    // The changes of the applied entry say what happened; the rest stays due.
    if (command.kind === 'checkpointLeases') this.tracker.checkpointFailed(command.leases);
    else {
      this.tracker.expiryFailed(command.leases);
      for (const { id } of command.leases) if (this.tracker.has(id)) this.#retryWaiting(id);
    }
    if (!(outcome instanceof Error)) {
      this.#proposeNext();
      return;
    }
    this.#phase = 'pausing';
    this.#wakeAtMs = this.#options.clock.monotonicMs() + retryDelayMs;
  }

  /** The remaining TTL, at least 1 while the lease exists, since 0 means gone; undefined if it does not exist. */
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

  /** Decides nothing more, and rejects all waiting renewals with `reason`. */
  stop(reason: Error): void {
    this.#stopped = true;
    for (const id of this.#waiting) this.#answer(id, reason);
  }

  #build(): void {
    for (let count = 0; count < buildSliceLeases; count += 1) {
      const next = this.#toBuild?.next();
      if (next === undefined || next.done === true) {
        this.#toBuild = undefined;
        this.#complete = true;
        this.#arm();
        return;
      }
      this.#adopt(next.value.id);
    }
    this.#wantPoll('build');
  }

  #adopt(id: bigint): boolean {
    const { state, clusterClock } = this.#options;
    const lease = state.lease(id);
    if (lease === undefined) return false;
    const deadlineMs = state.deadlineOf(lease);
    if (deadlineMs !== undefined) this.tracker.adopt(lease, clusterClock.toLeaseMs(deadlineMs));
    return this.tracker.has(id);
  }

  #renew(id: bigint): number | 'waits' {
    const { leaseClock, metrics } = this.#options;
    let renewal = this.tracker.renew(id, leaseClock.nowMs());
    if (renewal === 'unknown') {
      if (this.#complete || !this.#adopt(id)) return 0;
      renewal = this.tracker.renew(id, leaseClock.nowMs());
    }
    if (typeof renewal === 'number') {
      metrics.leaseRenewed();
      return renewal;
    }
    if (renewal === 'propose') {
      this.#renewals.push(id);
      this.#sendRenewals();
    }
    return 'waits';
  }

  #removed(id: bigint, cause: 'revoked' | 'expired', nowMs: number): void {
    const tracked = this.tracker.applyRemoved(id);
    if (tracked !== undefined && cause === 'expired') {
      this.#options.metrics.leaseExpired(nowMs - tracked.deadlineMs);
    }
    this.#answer(id, 0);
  }

  #answer(id: bigint, outcome: number | Error): void {
    if (this.#waiting.delete(id)) this.#options.decisions.push({ kind: 'answer', id, outcome });
  }

  #propose(command: LessorCommand): void {
    const { decisions, epoch } = this.#options;
    decisions.push({ kind: 'propose', epoch, command });
  }

  #wantPoll(purpose: PollPurpose): void {
    const { decisions, epoch } = this.#options;
    decisions.push({ kind: 'poll', epoch, purpose });
  }

  #arm(): void {
    if (!this.#complete || this.#phase !== 'idle') return;
    const { clock, leaseClock, maxSleepMs } = this.#options;
    const nextMs = this.tracker.nextDueMs();
    if (nextMs === undefined) return;
    const sleepMs = Math.min(Math.max(nextMs - leaseClock.nowMs(), 0), maxSleepMs);
    // In whole milliseconds: a rest below the clocks' rounding would repeat endlessly.
    this.#wakeAtMs = Math.min(this.#wakeAtMs, clock.monotonicMs() + Math.ceil(sleepMs));
  }

  /**
   * A lease is never expired directly from a timer or from the end of an append (rule 8): the process may have stalled
   * just before, and during the poll phase itself. A lease that came due only while the sockets were read waits for the
   * next decision, since its renewal may have arrived too late to be read in this one.
   */
  #readSockets(): void {
    this.#phase = 'reading';
    this.#polls = 0;
    this.#poll();
  }

  #poll(): void {
    const { leaseClock } = this.#options;
    this.#polls += 1;
    this.#stallsBefore = leaseClock.stallCount();
    this.#readUpToMs = leaseClock.nowMs();
    this.#wantPoll('expiry');
  }

  #socketsRead(): void {
    const hadStall = this.#options.leaseClock.stallCount() !== this.#stallsBefore;
    if (hadStall && this.#polls < maxPollsPerDecision) this.#poll();
    else this.#decide();
  }

  #decide(): void {
    const due = this.tracker.takeDue(this.#readUpToMs, maxCheckpointsPerEntry);
    this.#checkpoints = due.checkpoint;
    this.#expiries = due.expire;
    if (due.expire.length > 0 || due.checkpoint.length > 0) {
      this.#proposeNext();
      return;
    }
    this.#phase = 'idle';
    this.#arm();
  }

  /** One entry at a time, so that the commands of clients get in between. */
  #proposeNext(): void {
    const command = this.#nextCommand();
    if (command === undefined) {
      this.#readSockets();
      return;
    }
    this.#phase = 'proposing';
    this.#propose(command);
  }

  #nextCommand(): LessorCommand | undefined {
    const { clusterClock, state } = this.#options;
    if (this.#checkpoints.length > 0) {
      const leases = this.#checkpoints.map(({ id, renewIndex, deadlineMs }) => {
        return { id, renewIndex, deadlineMs: clusterClock.toClusterMs(deadlineMs) };
      });
      this.#checkpoints = [];
      return { kind: 'checkpointLeases', leases };
    }
    let keys = 0;
    let count = 0;
    for (const { id } of this.#expiries) {
      keys += state.keyCountOfLease(id);
      if (count > 0 && (count >= maxExpiriesPerEntry || keys > maxExpiredKeysPerEntry)) break;
      count += 1;
    }
    if (count === 0) return undefined;
    const leases = this.#expiries.slice(0, count);
    this.#expiries = this.#expiries.slice(count);
    return { kind: 'expireLeases', leases };
  }

  /** The expiry did not remove the lease, so its waiting renewals are treated like any other. */
  #retryWaiting(id: bigint): void {
    if (!this.#waiting.has(id)) return;
    const outcome = this.#renew(id);
    if (outcome !== 'waits') this.#answer(id, outcome);
  }

  /** One entry at a time renews checkpointed leases; renewals that arrive meanwhile join the next. */
  #sendRenewals(): void {
    if (this.#renewalsOut) return;
    this.#renewalsOut = true;
    this.#wantPoll('renewals');
  }

  #proposeRenewals(): void {
    const ids = this.#renewals.splice(0, maxRenewalsPerEntry);
    if (ids.length > 0) this.#propose({ kind: 'renewLeases', ids });
    else this.#renewalsOut = false;
  }

  #renewalsEnded(ids: readonly bigint[], outcome: CommandResponse | Error): void {
    if (!(outcome instanceof Error) && outcome.kind === 'renewLeases') {
      this.#renewedByLog(outcome.renewed);
      for (const id of ids) this.#answer(id, 0);
    } else {
      const error = outcome instanceof Error ? outcome : new Error(`a renewal was refused: ${outcome.kind}`);
      this.tracker.renewalFailed(ids);
      for (const id of ids) this.#answer(id, error);
    }
    // The applied entry may not mention these leases: without an applied checkpoint a renewal does not change a lease.
    this.#arm();
    this.#proposeRenewals();
  }

  #renewedByLog(ids: readonly bigint[]): void {
    const nowMs = this.#options.leaseClock.nowMs();
    for (const id of ids) {
      const tracked = this.tracker.get(id);
      if (tracked === undefined) continue;
      const lease = this.#options.state.lease(id);
      if (tracked.state === 'renewing' && lease !== undefined) this.tracker.applyRenewed(lease, nowMs);
      this.#answer(id, tracked.ttlMs);
    }
    this.#options.metrics.leaseRenewed(ids.length);
  }
}
