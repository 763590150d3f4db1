import type { LeaseChange } from '@tenure/core';
import { ClusterClock } from '../leases/cluster-clock.ts';
import type { LeaseClock } from '../leases/lease-clock.ts';
import { Lessor, type LeaseState, type LessorMetrics } from '../leases/lessor.ts';
import type { Random } from '../random/random.ts';
import type { AppendPermit } from '../replica/append-permit.ts';
import type { Clock, ClockReading } from '../time/clock.ts';
import type { Decision } from './decision.ts';
import { LeaderLease } from './leader-lease.ts';

export interface LeaderTermOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly leaseClock: LeaseClock;
  /** The state directly after the claim was applied. */
  readonly state: LeaseState & { readonly epoch: number; readonly clusterTimeMs: number; readonly leaseCount: number };
  /** When the append of the claim began. */
  readonly began: ClockReading;
  /** Infinity on a log that no other server appends to. */
  readonly leaderLeaseMs: number;
  readonly heartbeatIntervalMs: number;
  /** Whether followers wait for heartbeats. */
  readonly isShared: boolean;
  readonly metrics: LessorMetrics;
  readonly decisions: { push(decision: Decision): unknown };
}

/**
 * One epoch in which this server leads: its leader lease, its leases and its heartbeats. A leader lease that has ended
 * is never resumed: this server steps down, and its next epoch begins with a new term.
 */
export class LeaderTerm {
  readonly lessor: Lessor;
  readonly #options: LeaderTermOptions;
  readonly epoch: number;
  readonly #leaderLease: LeaderLease;
  readonly #clusterClock: ClusterClock;
  #lastAppendBeganMs: number;
  #heartbeatAtMs = Infinity;
  #over = false;
  #resigned = false;

  constructor(options: LeaderTermOptions) {
    const { clock, random, leaseClock, state, began, leaderLeaseMs, metrics, heartbeatIntervalMs, decisions } = options;
    this.#options = options;
    this.epoch = state.epoch;
    this.#leaderLease = new LeaderLease(clock, leaderLeaseMs, began);
    this.#clusterClock = new ClusterClock(leaseClock, state.clusterTimeMs);
    this.#lastAppendBeganMs = began.monotonicMs;
    this.lessor = new Lessor({
      clock,
      random,
      epoch: state.epoch,
      leaseClock,
      clusterClock: this.#clusterClock,
      state,
      metrics,
      maxSleepMs: heartbeatIntervalMs,
      decisions,
    });
  }

  /** When `timePassed` must be called, by the monotonic clock. */
  get wakeAtMs(): number {
    return this.#over ? Infinity : Math.min(this.#heartbeatAtMs, this.lessor.wakeAtMs);
  }

  /** The claim has returned: the first entry follows at once, and the leases of earlier epochs are taken over. */
  begin(): void {
    this.#options.decisions.push({ kind: 'heartbeat' });
    this.#heartbeatAtMs = this.#lastAppendBeganMs + this.#options.heartbeatIntervalMs;
    this.lessor.begin();
  }

  /** Whether leadership is being transferred. */
  get isResigned(): boolean {
    return this.#resigned;
  }

  /** An append is about to begin. Undefined: no append may begin any more. */
  beginAppend(now: ClockReading): AppendPermit | undefined {
    if (!this.stillActs()) return undefined;
    this.#lastAppendBeganMs = now.monotonicMs;
    return { timeMs: this.#clusterClock.nowMs(), began: now };
  }

  /** An append of this epoch that began at this reading has returned. */
  appended(began: ClockReading): void {
    this.#leaderLease.extend(began);
  }

  applied(changes: readonly LeaseChange[]): void {
    this.lessor.applied(changes);
  }

  /** Whether this server may still act in this epoch. The first no ends the term, with the decision to step down. */
  stillActs(): boolean {
    if (this.#over) return false;
    if (this.#leaderLease.holds()) return true;
    this.#over = true;
    this.#options.decisions.push({ kind: 'stepDown', epoch: this.epoch });
    return false;
  }

  /**
   * Whether this server may answer without the log. A leader that transfers leadership may not: its successor may claim
   * as soon as the resignation is in the log, possibly before this server knows. Has no side effect.
   */
  get mayActAlone(): boolean {
    return !this.isResigned && !this.#over && this.#leaderLease.holds();
  }

  timePassed(): void {
    if (!this.stillActs()) return;
    this.#beat();
    this.lessor.timePassed();
  }

  /** Leadership is being transferred: this server no longer renews or expires leases. */
  resign(reason: Error): void {
    this.#resigned = true;
    this.lessor.stop(reason);
  }

  /** The epoch is over for this server. Waiting renewals are rejected with `reason`. */
  end(reason: Error): void {
    this.#over = true;
    this.lessor.stop(reason);
  }

  #beat(): void {
    const { clock, heartbeatIntervalMs, isShared, state, decisions } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#heartbeatAtMs) return;
    const dueMs = this.#lastAppendBeganMs + heartbeatIntervalMs;
    this.#heartbeatAtMs = dueMs > nowMs ? dueMs : nowMs + heartbeatIntervalMs;
    // Without followers, heartbeats only advance cluster time, which matters only while there are leases.
    if (dueMs <= nowMs && (isShared || state.leaseCount > 0)) decisions.push({ kind: 'heartbeat' });
  }
}
