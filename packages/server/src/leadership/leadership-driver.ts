import type { Command, CommandResponse, Requester, StateMachine } from '@tenure/core';
import { AccessError } from '../replica/access-error.ts';
import type { ClaimOutcome } from '../replica/replica-fact.ts';
import type { Clock } from '../time/clock.ts';
import type { Decision, Fact } from './decision.ts';
import type { Leadership } from './leadership.ts';

/** The part of the replica that the driver calls. */
export interface DrivenReplica {
  readonly state: Pick<StateMachine, 'accessOf'>;
  claim(claim: { readonly leader: string; readonly leaderLeaseMs: number }): Promise<ClaimOutcome>;
  /** Appended in the epoch that this server leads now, or never. */
  proposeHere(command: Command): Promise<CommandResponse>;
  /** Resolves when an append that begins after the call has returned. */
  barrier(): Promise<void>;
  /** Resolves when the append that grants or revokes this lease has returned; undefined when none is in flight. */
  leaseSettled(id: bigint): Promise<void> | undefined;
  /** The same for an append that may create revisions. */
  revisionSettled(): Promise<void> | undefined;
  /** The same for an append that changes users, roles or permissions. */
  authSettled(): Promise<void> | undefined;
  /** Nothing more is appended in this epoch. Ignored if another epoch has begun. */
  stepDown(epoch: number): void;
}

export interface LeadershipDriverOptions {
  readonly leadership: Leadership;
  readonly replica: DrivenReplica;
  readonly clock: Clock;
  /** This server has begun or stopped leading. */
  readonly onChange: (leads: boolean) => void;
  readonly onFailed: (error: Error) => void;
}

type Waiter = (outcome: number | Error) => void;

/**
 * Carries out the decisions of the leadership, with the replica and the clock, and reports their outcome to it.
 * Everything that waits for a decision passes here: renewals, a resignation, a claim.
 *
 * The order for one fact: the leadership is told; its decisions are carried out in order; the decisions that result
 * from them follow; then the single timer is set to the time for which the leadership asked.
 */
export class LeadershipDriver {
  readonly #options: LeadershipDriverOptions;
  /** Renewals that wait for the log, by lease. */
  readonly #waiting = new Map<bigint, Waiter[]>();
  #claiming: Promise<void> = Promise.resolve();
  #resigning: Promise<unknown> = Promise.resolve();
  #isCarryingOut = false;
  #isStopped = false;
  #timerAtMs = Infinity;
  #cancelTimer: () => void = () => {};

  constructor(options: LeadershipDriverOptions) {
    this.#options = options;
    this.#setTimer();
  }

  /** Never throws: an error here is one in Tenure, and the server must stop. */
  tell(fact: Fact): void {
    try {
      this.#options.leadership.step(fact);
      this.#carryOut();
    } catch (error) {
      this.#options.onFailed(asError(error));
    }
  }

  /**
   * Renews a lease: its granted TTL in milliseconds, or 0 if it does not exist; undefined when this server may not act
   * for leases. A number where memory alone decides. A promise where the log decides, which rejects if the outcome
   * stays unknown. Before it answers, this server has applied every revision that a client had seen at the time of the
   * call, because the reply names a revision.
   *
   * Rejects with AccessError if the requester may not renew it, by a state that has all changes of permissions and,
   * while authentication is enabled, all keys of the lease that were acknowledged before the call.
   */
  renew(id: bigint, by: Requester | undefined): number | Promise<number> | undefined {
    const { leadership, replica } = this.#options;
    const isChecked = replica.state.accessOf(by) !== undefined;
    const revisionSettled = replica.revisionSettled();
    const settled = replica.leaseSettled(id) ?? replica.authSettled() ?? (isChecked ? revisionSettled : undefined);
    if (settled === undefined || leadership.lessor === undefined) return this.#renew(id, by, revisionSettled);
    // Once: what the next append holds was not acknowledged before the call.
    return settled.then(() => this.#renew(id, by, undefined) ?? Promise.reject(leadsNoMore()));
  }

  #renew(
    id: bigint,
    by: Requester | undefined,
    revisionSettled: Promise<void> | undefined,
  ): number | Promise<number> | undefined {
    const { leadership, replica } = this.#options;
    const refusal = replica.state.accessOf(by)?.writeKeysOf(id);
    // A server that may not act for leases does not refuse either: another one may know better.
    if (refusal !== undefined && leadership.lessor !== undefined) return Promise.reject(new AccessError(refusal));
    if (refusal !== undefined) return undefined;
    const { tracked } = leadership;
    const outcome = leadership.renew(id);
    if (typeof outcome === 'number' && revisionSettled === undefined) return outcome;
    const answer = outcome === 'waits' ? this.#answer(id) : outcome;
    this.#carryOut();
    if (answer === undefined) return undefined;
    return Promise.all([answer, revisionSettled]).then(([ttlMs]) => {
      // The leader lease may have ended meanwhile: another server may lead, and the lease may have expired.
      if (leadership.lessor !== tracked) throw leadsNoMore();
      return ttlMs;
    });
  }

  /** Claims without waiting for a leader. Resolves when the claim in flight, if any, has ended, with any outcome. */
  claimNow(): Promise<void> {
    this.#options.leadership.claimNow();
    this.#carryOut();
    return this.#claiming;
  }

  /**
   * Transfers leadership to another member: this server stops renewing and expiring leases, appends its resignation,
   * and stops leading.
   */
  async resign(target: bigint): Promise<void> {
    this.#options.leadership.resign(target);
    this.#carryOut();
    await this.#resigning;
  }

  /**
   * Called before this server closes its sockets. It claims no more and stops acting for leases, since renewals no
   * longer reach it. Transfers leadership to `successor`; without one it continues to append.
   */
  async leave(successor: bigint | undefined): Promise<void> {
    const { leadership } = this.#options;
    leadership.leave();
    this.#carryOut();
    if (successor !== undefined && leadership.leads) await this.resign(successor);
  }

  stop(reason: Error): void {
    this.#options.leadership.stop(reason);
    this.#carryOut();
    this.#isStopped = true;
    this.#cancelTimer();
  }

  #answer(id: bigint): Promise<number> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = (outcome) => (typeof outcome === 'number' ? resolve(outcome) : reject(outcome));
      const waiters = this.#waiting.get(id);
      if (waiters === undefined) this.#waiting.set(id, [waiter]);
      else waiters.push(waiter);
    });
  }

  /** A decision may cause facts, which are reported at once. Their decisions run after the earlier ones. */
  #carryOut(): void {
    if (this.#isCarryingOut) return;
    this.#isCarryingOut = true;
    try {
      const { leadership } = this.#options;
      for (let next = leadership.takeDecisions(); next.length > 0; next = leadership.takeDecisions()) {
        for (const decision of next) this.#perform(decision);
      }
    } finally {
      this.#isCarryingOut = false;
    }
    this.#setTimer();
  }

  #perform(decision: Decision): void {
    const { replica, clock, onChange, onFailed } = this.#options;
    switch (decision.kind) {
      case 'claim':
        this.#claiming = this.#claim(decision);
        break;
      case 'heartbeat':
        // Without an outcome, another server leads or the engine is unavailable. Both end the epoch elsewhere.
        replica.barrier().catch(() => undefined);
        break;
      case 'propose':
        this.#propose(decision);
        break;
      case 'poll':
        clock.afterPoll(() => this.tell({ ...decision, kind: 'polled' }));
        break;
      case 'answer':
        this.#answered(decision.id, decision.outcome);
        break;
      case 'stepDown':
        replica.stepDown(decision.epoch);
        break;
      case 'changed':
        onChange(decision.leads);
        break;
      case 'fail':
        onFailed(decision.error);
        break;
    }
  }

  async #claim(claim: { readonly leader: string; readonly leaderLeaseMs: number }): Promise<void> {
    let outcome: ClaimOutcome | Error;
    try {
      outcome = await this.#options.replica.claim(claim);
    } catch (error) {
      outcome = asError(error);
    }
    this.tell({ kind: 'claimEnded', outcome });
  }

  #propose({ epoch, command }: Extract<Decision, { kind: 'propose' }>): void {
    const proposed = this.#options.replica.proposeHere(command);
    if (command.kind === 'resign') this.#resigning = proposed;
    proposed.then(
      (outcome) => this.tell({ kind: 'proposalEnded', epoch, command, outcome }),
      (error: unknown) => this.tell({ kind: 'proposalEnded', epoch, command, outcome: asError(error) }),
    );
  }

  #answered(id: bigint, outcome: number | Error): void {
    const waiters = this.#waiting.get(id) ?? [];
    this.#waiting.delete(id);
    for (const waiter of waiters) waiter(outcome);
  }

  #setTimer(): void {
    const { leadership, clock } = this.#options;
    const { wakeAtMs } = leadership;
    if (this.#isStopped || wakeAtMs >= this.#timerAtMs) return;
    this.#cancelTimer();
    this.#timerAtMs = wakeAtMs;
    this.#cancelTimer = clock.after(Math.max(0, Math.ceil(wakeAtMs - clock.monotonicMs())), () => {
      this.#timerAtMs = Infinity;
      this.tell({ kind: 'timePassed' });
    });
  }
}

function leadsNoMore(): Error {
  return new Error('this server does not lead any more');
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
