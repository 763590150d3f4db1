import type { Applied, Entry } from '@tenure/core';
import { LeaseClock } from '../leases/lease-clock.ts';
import type { LeaseState, Lessor, LessorMetrics } from '../leases/lessor.ts';
import type { Random } from '../random/random.ts';
import type { AppendAuthority, AppendPermit } from '../replica/append-permit.ts';
import type { Clock, ClockReading } from '../time/clock.ts';
import type { ClaimOutcome } from '../replica/replica-fact.ts';
import type { Decision, Fact } from './decision.ts';
import { Election } from './election.ts';
import { LeaderTerm } from './leader-term.ts';

export interface LeadershipState extends LeaseState {
  readonly epoch: number;
  readonly leaderLeaseMs: number;
  readonly clusterTimeMs: number;
  readonly successor: bigint;
  readonly leaseCount: number;
}

export interface LeadershipOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** The replicated state. Always the same object. */
  readonly state: LeadershipState;
  /** Whether other servers may append to the log. If not, the leader lease has no end. */
  readonly isShared: boolean;
  readonly metrics: LessorMetrics;
  readonly memberId: bigint;
  /** Identifies one run of this server in its claims. */
  readonly leaderId: string;
  readonly heartbeatIntervalMs: number;
  /** Infinity on a log that no other server appends to. */
  readonly electionTimeoutMs: number;
  /** The leader lease in this server's claims. */
  readonly leaderLeaseMs: number;
}

/**
 * Decides when this server claims, what it may do while it leads, and when it must stop leading. Like etcd-io/raft it
 * does no I/O: facts go in (`step`), and decisions come out (`takeDecisions`). It has no replica, no timer and no
 * promise. It only reads the state and the clocks.
 *
 * The driver takes the decisions after each call that is not a getter, and carries them out in order; the outcome of a
 * decision is a later fact. `step` may be called while an entry is being applied: the decisions that follow append
 * nothing synchronously.
 *
 * Safety comes from the log: a claim or a batch is appended only directly after the applied position. Clocks decide
 * when this server proposes something, and how long a leader may answer renewals without the log.
 */
export class Leadership implements AppendAuthority {
  readonly #options: LeadershipOptions;
  readonly #leaseClock: LeaseClock;
  readonly #election: Election;
  #decisions: Decision[] = [];
  #term: LeaderTerm | undefined;
  /** When the claim in flight began, read before its append; undefined while there is none. */
  #claimBegan: ClockReading | undefined;
  #stopped = false;

  constructor(options: LeadershipOptions) {
    const { clock, random, state, electionTimeoutMs } = options;
    this.#options = options;
    this.#leaseClock = new LeaseClock(clock);
    this.#election = new Election({ clock, electionTimeoutMs, state, random: () => random.fraction() });
  }

  /** The decisions since the last call, in order. */
  takeDecisions(): readonly Decision[] {
    const decisions = this.#decisions;
    if (decisions.length > 0) this.#decisions = [];
    return decisions;
  }

  /** When the fact `timePassed` must be reported, by the monotonic clock. It may be reported at any time. */
  get wakeAtMs(): number {
    const claimAtMs = this.#stopped ? Infinity : this.#election.wakeAtMs;
    return Math.min(claimAtMs, this.#term?.wakeAtMs ?? Infinity);
  }

  /** The lessor, while this server leads and may act for leases without the log. */
  get lessor(): Lessor | undefined {
    return this.#term?.mayActAlone === true ? this.#term.lessor : undefined;
  }

  /** The lessor, also while it may not act: for metrics. */
  get tracked(): Lessor | undefined {
    return this.#term?.lessor;
  }

  /** Whether this server leads, as far as it knows. */
  get leads(): boolean {
    return this.#term !== undefined;
  }

  /** Whether this server leads, or applied an entry of a leader within the election timeout. */
  get hasLeader(): boolean {
    return this.#term !== undefined || this.#election.hasLeader;
  }

  /**
   * Whether no other server can have led until now, by the clocks. Every acknowledged write is then applied here or in
   * flight.
   */
  mayRead(): boolean {
    return this.#term?.mayActAlone ?? false;
  }

  /**
   * A leader appends nothing after its resignation: its successor's claim must come directly after it, and would
   * otherwise fail.
   */
  beginAppend(): AppendPermit | undefined {
    if (this.#options.state.successor !== 0n) return undefined;
    return this.#term?.beginAppend(this.#readClocks());
  }

  /** A renewal, as `Lessor.renew` answers it; undefined if this server may not act for leases. */
  renew(id: bigint): number | 'waits' | undefined {
    const term = this.#term;
    if (term === undefined || term.isResigned || !term.stillActs()) return undefined;
    return term.lessor.renew(id);
  }

  /** Claim without waiting for a leader: this cluster never had one, or no other server may lead. */
  claimNow(): void {
    if (this.#stopped || this.#claimBegan !== undefined || this.leads) return;
    const { leaderId: leader, leaderLeaseMs } = this.#options;
    this.#claimBegan = this.#readClocks();
    this.#decisions.push({ kind: 'claim', leader, leaderLeaseMs });
  }

  /** Transfers leadership to another member. Throws if this server does not lead. */
  resign(target: bigint): void {
    if (this.#term === undefined) throw new Error('this server does not lead');
    this.#term.resign(new Error('leadership was transferred'));
    this.#decisions.push({ kind: 'propose', epoch: this.#term.epoch, command: { kind: 'resign', target } });
  }

  /**
   * Called before this server stops: it claims no more and stops acting for leases, but continues to append if it
   * leads.
   */
  leave(): void {
    this.#stopped = true;
    this.#term?.resign(new Error('the server is stopping'));
  }

  stop(reason: Error): void {
    this.#stopped = true;
    this.#leaseClock.stop();
    this.#endTerm(reason);
  }

  step(fact: Fact): void {
    switch (fact.kind) {
      case 'applied':
        this.#applied(fact.entry, fact.applied, fact.leads);
        break;
      case 'appended':
        this.#term?.appended(fact.permit.began);
        break;
      case 'loaded':
        this.#election.heard();
        this.#claimIfNamed();
        break;
      case 'deposed':
        this.#endTerm(new Error('this server does not lead any more'));
        this.#decisions.push({ kind: 'changed', leads: false });
        break;
      case 'claimEnded':
        this.#claimEnded(fact.outcome);
        break;
      case 'proposalEnded':
        this.#proposalEnded(fact);
        break;
      case 'polled':
        this.#polled(fact);
        break;
      case 'timePassed':
        if (this.#election.timePassed()) this.claimNow();
        this.#term?.timePassed();
        break;
    }
  }

  #applied(entry: Entry, applied: Applied, leads: boolean): void {
    this.#election.heard();
    const first = entry.commands[0];
    if (first?.kind === 'claim' && applied.responses[0]?.kind !== 'error') {
      this.#endTerm(new Error('another epoch has begun'));
      // A claim that this server abandoned may still appear in the log. Such a claim does not make it lead.
      if (leads && this.#claimBegan !== undefined) this.#term = this.#newTerm(this.#claimBegan);
    }
    if (applied.leaseChanges.length > 0) this.#term?.applied(applied.leaseChanges);
    if (first?.kind === 'resign') this.#claimIfNamed();
  }

  #claimEnded(outcome: ClaimOutcome | Error): void {
    this.#claimBegan = undefined;
    if (outcome instanceof Error) this.#decisions.push({ kind: 'fail', error: outcome });
    if (outcome !== 'leads' || this.#term === undefined) return;
    if (this.#stopped) {
      this.#decisions.push({ kind: 'stepDown', epoch: this.#options.state.epoch });
      return;
    }
    this.#term.begin();
    this.#decisions.push({ kind: 'changed', leads: true });
  }

  #proposalEnded({ epoch, command, outcome }: Extract<Fact, { kind: 'proposalEnded' }>): void {
    switch (command.kind) {
      case 'resign':
        // No server acts for the leases any more, so this one stops leading even if its resignation was not appended.
        this.#decisions.push({ kind: 'stepDown', epoch });
        break;
      default:
        if (this.#term?.epoch === epoch) this.#term.lessor.proposalEnded(command, outcome);
    }
  }

  #polled({ epoch, purpose }: Extract<Fact, { kind: 'polled' }>): void {
    if (this.#term?.epoch === epoch && this.#term.stillActs()) this.#term.lessor.polled(purpose);
  }

  /**
   * Claims if the leader has resigned in favour of this server. If the entries that are applied next hold another
   * claim, this one is lost: it is appended directly after the resignation or not at all.
   */
  #claimIfNamed(): void {
    const { successor } = this.#options.state;
    if (successor === this.#options.memberId) this.claimNow();
  }

  #newTerm(began: ClockReading): LeaderTerm {
    this.#leaseClock.start();
    const { isShared, state } = this.#options;
    const leaderLeaseMs = isShared ? state.leaderLeaseMs : Infinity;
    const decisions = { push: (decision: Decision) => this.#decisions.push(decision) };
    return new LeaderTerm({ ...this.#options, leaseClock: this.#leaseClock, began, leaderLeaseMs, decisions });
  }

  #endTerm(reason: Error): void {
    this.#term?.end(reason);
    this.#term = undefined;
  }

  #readClocks(): ClockReading {
    const { clock } = this.#options;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}
