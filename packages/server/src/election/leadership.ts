import type { Applied, Command, CommandResponse, Entry } from '@tenure/core';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { Election } from './election.ts';
import { LeaderTerm } from './leader-term.ts';
import { LeaseClock } from '../leases/lease-clock.ts';
import type { LeaseKeeper, LeaseKeeperMetrics, LeaseState } from '../leases/lease-keeper.ts';
import type { ClockReading } from './right.ts';

export interface LeadershipState extends LeaseState {
  readonly epoch: number;
  readonly leader: string;
  readonly rightMs: number;
  readonly clusterTimeMs: number;
  readonly successor: bigint;
  readonly leaseCount: number;
}

/** What leadership needs of the replica. */
export interface LeadershipPort {
  readonly state: LeadershipState;
  /** Whether other servers may append to the log. */
  readonly isShared: boolean;
  readonly leading: boolean;
  readonly lastAppendBeganMs: number;
  claim(claim: { readonly leader: string; readonly rightMs: number }): Promise<'leads' | 'lost' | 'unclear'>;
  /**
   * Appended in the epoch that this server leads now, or never: what one leader thought due must not be done in the
   * epoch of another.
   */
  proposeHere(command: Command): Promise<CommandResponse>;
  barrier(): Promise<void>;
  /** Resolves when the append that grants or revokes this lease has come back; undefined when none is out. */
  leaseSettled(id: bigint): Promise<void> | undefined;
  /** The same for an append that may make new revisions. */
  revisionSettled(): Promise<void> | undefined;
  stepDown(): void;
}

export interface LeadershipOptions {
  readonly clock: Clock;
  readonly port: () => LeadershipPort;
  readonly metrics: LeaseKeeperMetrics;
  readonly memberId: bigint;
  /** Names one run of this server, as its claims do. */
  readonly leaderId: string;
  readonly heartbeatIntervalMs: number;
  /** Infinity on a log that no other server appends to. */
  readonly electionTimeoutMs: number;
  /** What claims name. A right is not timed on a log that no other server appends to. */
  readonly rightMs: number;
  readonly random: Random;
  /** This server has begun to lead, or has ceased to. */
  readonly onChange: (leads: boolean) => void;
  readonly onFailed: (error: Error) => void;
}

/**
 * When this server claims, what it may do while it leads, and when it must cease. Safety comes from the log: a claim
 * or a batch is appended only directly behind what was applied. Clocks decide when somebody proposes something, and
 * how long a leader may answer renewals alone.
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #leaseClock: LeaseClock;
  readonly #election: Election;
  #term: LeaderTerm | undefined;
  #claiming = false;
  #began: ClockReading;
  #stopped = false;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#leaseClock = new LeaseClock(options.clock);
    this.#began = this.#readClocks();
    this.#election = new Election({
      clock: options.clock,
      electionTimeoutMs: options.electionTimeoutMs,
      rightMs: () => options.port().state.rightMs,
      random: () => options.random.fraction(),
      engaged: () => this.#claiming || options.port().leading,
      claim: () => void this.#claim(),
    });
  }

  /** The keeper of the leases, while this server leads and has the right to act for them. */
  get keeper(): LeaseKeeper | undefined {
    const term = this.#term;
    return term?.mayActAlone() === true ? term.keeper : undefined;
  }

  /**
   * Renews a lease as its keeper does, at once; undefined when this server may not act for leases. The answer is given
   * when the state here has every revision that anybody was told of before the call: the reply names one.
   */
  renew(id: bigint): number | Promise<number> | undefined {
    const { keeper } = this;
    if (keeper === undefined) return undefined;
    const port = this.#options.port();
    const settled = port.leaseSettled(id);
    if (settled === undefined) {
      const revisionSettled = port.revisionSettled();
      const outcome = keeper.renew(id);
      if (revisionSettled === undefined && typeof outcome === 'number') return outcome;
      return Promise.all([outcome, revisionSettled]).then(([ttlMs]) => this.#whileActing(keeper, ttlMs));
    }
    return settled.then(() => this.renew(id) ?? Promise.reject(new Error('this server does not lead any more')));
  }

  /**
   * A renewal that waited for the log is good only if the right holds when the log has answered: a process that was
   * suspended meanwhile may read that answer when another leads, and the lease has ended.
   */
  #whileActing(keeper: LeaseKeeper, ttlMs: number): number {
    if (this.keeper !== keeper) throw new Error('this server does not lead any more');
    return ttlMs;
  }

  /** The keeper, whether or not it may act: for metrics. */
  get tracked(): LeaseKeeper | undefined {
    return this.#term?.keeper;
  }

  /** Whether this server leads, as far as it knows: its right is asked for before it acts. */
  get leads(): boolean {
    return this.#term !== undefined;
  }

  /** Whether something was heard of a leader within the election timeout, or this server is the leader. */
  get hasLeader(): boolean {
    return this.#term !== undefined || this.#election.hasLeader;
  }

  /**
   * Whether this server may take what it has applied, and what it has out, for all that was acknowledged anywhere: no
   * other can have led yet, by the clocks. Once a resignation may be in the log, another may.
   */
  mayRead(): boolean {
    return this.#term?.mayActAlone() ?? false;
  }

  stampMs(): number {
    return this.#term?.stampMs() ?? this.#options.port().state.clusterTimeMs;
  }

  /**
   * Asked directly before each append of this leader. Behind its resignation it appends nothing: the claim of whom it
   * has named goes there, and would fail if anything came in between.
   */
  mayAppend(): boolean {
    this.#began = this.#readClocks();
    if (this.#options.port().state.successor !== 0n) return false;
    return this.#term?.mayAct() ?? false;
  }

  /** The append before which `mayAppend` was asked last has come back, and was applied. */
  appended(): void {
    this.#term?.appended(this.#began);
  }

  /** To be called for each applied entry, whoever appended it. */
  applied(entry: Entry, applied: Applied): void {
    this.#election.heard();
    const first = entry.commands[0];
    const { leaderId, port } = this.#options;
    if (first?.kind === 'claim' && applied.responses[0]?.kind !== 'error') {
      this.#endTerm('another epoch has begun');
      // A claim of this server that it has given up may still come, while it is about to claim anew: by the log alone.
      if (first.leader === leaderId && this.#claiming && port().leading) this.#term = this.#newTerm();
    }
    if (applied.leaseChanges.length > 0) this.#term?.keeper.applied(applied.leaseChanges);
    if (first?.kind === 'resign') this.#claimIfNamed();
  }

  /** The state was replaced by that of a snapshot, while this server followed. */
  loaded(): void {
    this.#election.heard();
    this.#claimIfNamed();
  }

  /** The replica has ceased to append: another came in between, the engine could not tell, or the right has lapsed. */
  deposed(): void {
    this.#endTerm('this server does not lead any more');
    this.#options.onChange(false);
  }

  /**
   * Claims without waiting for a leader: nobody has ever led in this cluster, or nobody else may. Resolves when the
   * claim has come to its end, however it came out.
   */
  claimNow(): Promise<void> {
    return this.#claim();
  }

  /** Hands the lead to another member: this one stops acting, says so in the log, and ceases. */
  async resign(target: bigint): Promise<void> {
    const term = this.#term;
    if (term === undefined) throw new Error('this server does not lead');
    term.resign(new Error('the lead was handed on'));
    try {
      await this.#options.port().proposeHere({ kind: 'resign', target });
    } finally {
      // Nobody keeps the leases any more, so this server ceases to lead whether or not the log has taken its word.
      if (this.#term === term) this.#options.port().stepDown();
    }
  }

  /**
   * To be called before this server shuts its door: it claims no more, and ceases to act for leases, since the renewals
   * of their holders do not reach it from then on. Hands the lead on to `successor`; without one it goes on to append.
   */
  async leave(successor: bigint | undefined): Promise<void> {
    this.#stopped = true;
    this.#election.stop();
    if (successor === undefined) this.#term?.resign(new Error('the server is stopping'));
    else if (this.#term !== undefined) await this.resign(successor);
  }

  stop(reason: Error): void {
    this.#stopped = true;
    this.#election.stop();
    this.#leaseClock.stop();
    this.#term?.end(reason);
    this.#term = undefined;
  }

  /**
   * Claims if the leader has resigned in favour of this server: not within an apply, since a claim goes behind it. What
   * is applied in the meantime may be the claim of another, whose right has to be waited out like any other.
   */
  #claimIfNamed(): void {
    const { clock, memberId, port } = this.#options;
    const isNamed = (): boolean => port().state.successor === memberId;
    if (!isNamed()) return;
    clock.afterPoll(() => {
      if (isNamed()) this.#election.claimNow();
    });
  }

  async #claim(): Promise<void> {
    if (this.#stopped || this.#claiming) return;
    this.#claiming = true;
    const { port, leaderId, rightMs, onChange, onFailed } = this.#options;
    // Read before the append begins: the right is then no longer than it may be.
    this.#began = this.#readClocks();
    try {
      const outcome = await port().claim({ leader: leaderId, rightMs });
      if (outcome !== 'leads' || this.#term === undefined) return;
      if (this.#stopped) {
        port().stepDown();
        return;
      }
      this.#term.begin(onFailed);
      onChange(true);
    } catch (error) {
      onFailed(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.#claiming = false;
    }
  }

  #newTerm(): LeaderTerm {
    this.#leaseClock.start();
    const { clock, random, metrics, heartbeatIntervalMs, port } = this.#options;
    const replica = port();
    const { isShared, state } = replica;
    return new LeaderTerm({
      clock,
      random,
      leaseClock: this.#leaseClock,
      state,
      began: this.#began,
      rightMs: isShared ? state.rightMs : Infinity,
      heartbeatIntervalMs,
      metrics,
      propose: (command) => replica.proposeHere(command),
      heartbeat: () => replica.barrier(),
      // Followers wait for heartbeats; leases need only that cluster time goes on.
      wantsHeartbeat: () => isShared || state.leaseCount > 0,
      lastAppendBeganMs: () => replica.lastAppendBeganMs,
      lapsed: () => replica.stepDown(),
    });
  }

  #endTerm(reason: string): void {
    this.#term?.end(new Error(reason));
    this.#term = undefined;
  }

  #readClocks(): ClockReading {
    const { clock } = this.#options;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}
