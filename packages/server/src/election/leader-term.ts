import type { Command, CommandResponse } from '@tenure/core';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { ClusterClock } from '../leases/cluster-clock.ts';
import type { LeaseClock } from '../leases/lease-clock.ts';
import { LeaseKeeper, type LeaseKeeperMetrics, type LeaseState } from '../leases/lease-keeper.ts';
import { Right, type ClockReading } from './right.ts';

export interface LeaderTermOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly leaseClock: LeaseClock;
  /** The state directly after the claim was applied. */
  readonly state: LeaseState & { readonly clusterTimeMs: number };
  /** When the append of the claim began. */
  readonly began: ClockReading;
  readonly rightMs: number;
  readonly heartbeatIntervalMs: number;
  readonly metrics: LeaseKeeperMetrics;
  readonly propose: (command: Command) => Promise<CommandResponse>;
  /** An append that begins after the call comes back; an empty entry if there is nothing to append. */
  readonly heartbeat: () => Promise<void>;
  readonly wantsHeartbeat: () => boolean;
  readonly lastAppendBeganMs: () => number;
  /** The right has lapsed: the epoch must be given up. Called once. */
  readonly lapsed: () => void;
}

/**
 * One epoch in which this server leads: its right, its leases, its heartbeats. A
 * right that has lapsed is not resumed: the tracker is dropped, and the next epoch begins with a new one.
 */
export class LeaderTerm {
  readonly keeper: LeaseKeeper;
  readonly #options: LeaderTermOptions;
  readonly #right: Right;
  readonly #clusterClock: ClusterClock;
  #cancelHeartbeat: () => void = () => {};
  #over = false;
  #resigned = false;

  constructor(options: LeaderTermOptions) {
    const { clock, random, leaseClock, state, began, rightMs, metrics, propose, heartbeatIntervalMs } = options;
    this.#options = options;
    this.#right = new Right(clock, rightMs, began);
    this.#clusterClock = new ClusterClock(leaseClock, state.clusterTimeMs);
    this.keeper = new LeaseKeeper({
      clock,
      random,
      leaseClock,
      clusterClock: this.#clusterClock,
      state,
      propose,
      metrics,
      maxSleepMs: heartbeatIntervalMs,
      mayAct: () => this.mayAct(),
    });
  }

  /** To be called when the claim has been answered: the first entry follows at once, and the leases are taken over. */
  begin(failed: (error: Error) => void): void {
    this.#options.heartbeat().catch(() => undefined);
    this.#beat();
    this.keeper.build().catch(failed);
  }

  stampMs(): number {
    return this.#clusterClock.nowMs();
  }

  /** Whether this server may still act in this epoch. */
  mayAct(): boolean {
    if (this.#over) return false;
    if (this.#right.holds()) return true;
    this.#over = true;
    this.#options.lapsed();
    return false;
  }

  /** Whether it may answer without the log: a leader that hands on the lead ceases to, before the log says so. */
  mayActAlone(): boolean {
    return !this.#resigned && this.mayAct();
  }

  /** The lead is handed on: another may claim as soon as the log says so, which it may before this server knows. */
  resign(reason: Error): void {
    this.#resigned = true;
    this.keeper.stop(reason);
  }

  appended(began: ClockReading): void {
    this.#right.extend(began);
  }

  /** The epoch is over for this server. Renewals that wait are failed with `reason`. */
  end(reason: Error): void {
    this.#over = true;
    this.#cancelHeartbeat();
    this.keeper.stop(reason);
  }

  #beat(): void {
    if (!this.mayAct()) return;
    const { clock, heartbeatIntervalMs, lastAppendBeganMs, heartbeat, wantsHeartbeat } = this.#options;
    let delayMs = heartbeatIntervalMs - (clock.monotonicMs() - lastAppendBeganMs());
    if (delayMs <= 0) {
      delayMs = heartbeatIntervalMs;
      if (wantsHeartbeat()) heartbeat().catch(() => undefined);
    }
    this.#cancelHeartbeat = clock.after(Math.ceil(delayMs), () => this.#beat());
  }
}
