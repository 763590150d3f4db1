import type { LeaseDesk } from '../leases/lease-desk.ts';
import { ProposalError } from '../replica/proposal-error.ts';

export interface RenewalRoute {
  renew(id: bigint): void;
}

export interface ForwardingDeskOptions {
  /** Renews here, if this server leads and its right holds; undefined otherwise. */
  readonly renewHere: (id: bigint) => number | Promise<number> | undefined;
  /** The revision of the state here. */
  readonly revision: () => number;
}

type Waiter = (ttlMs: number | Error) => void;

/** Those who wait for one lease: for the question that is out, and for the one after it. */
interface WaitingRenewals {
  asked: Waiter[];
  next: Waiter[];
}

/** Leases whose renewals may wait for a leader at once. */
const maxWaitingLeases = 1_000_000;

/**
 * Renewals on a server that may or may not lead. What the leader has not answered is asked of the next, for as long
 * as somebody waits: a renewal may be asked twice, since it only says that its holder lives.
 */
export class ForwardingDesk implements LeaseDesk {
  readonly #options: ForwardingDeskOptions;
  readonly #waiting = new Map<bigint, WaitingRenewals>();
  #route: RenewalRoute | undefined;
  #isLost = false;
  #leaderRevision = 0;

  constructor(options: ForwardingDeskOptions) {
    this.#options = options;
  }

  renew(id: bigint): number | Promise<number> {
    const outcome = this.#options.renewHere(id);
    if (outcome === undefined) return this.#forward(id);
    if (typeof outcome === 'number') return outcome;
    return outcome.catch((error: unknown) => {
      // The leader's own log takes no more: there is nobody else to be asked, and whoever waits would wait in vain.
      if (error instanceof ProposalError && error.code === 'overloaded') throw error;
      // When this server stops leading before the answer is there, the next leader is asked.
      return this.#forward(id);
    });
  }

  revision(): number {
    return Math.max(this.#options.revision(), this.#leaderRevision);
  }

  /** The way to the leader has opened, or closed: all that wait are asked again. */
  linked(route: RenewalRoute | undefined): void {
    this.#route = route;
    if (route === undefined) return;
    this.#isLost = false;
    for (const [id, waiting] of this.#waiting) {
      waiting.asked.push(...waiting.next.splice(0));
      route.renew(id);
    }
  }

  /** This server leads now: all that wait are renewed here. */
  leads(): void {
    this.#isLost = false;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [id, { asked, next }] of waiting) {
      const tell = (result: number | Error): void => {
        for (const waiter of [...asked, ...next]) waiter(result);
      };
      const outcome = this.renew(id);
      if (typeof outcome === 'number') tell(outcome);
      else outcome.then(tell, tell);
    }
  }

  renewed(id: bigint, ttlMs: number, revision: number): void {
    this.#leaderRevision = Math.max(this.#leaderRevision, revision);
    this.#answered(id, ttlMs);
  }

  /** The leader's log takes no more: whoever waits for this question is told so, as on the leader itself. */
  refused(id: bigint): void {
    this.#answered(id, new ProposalError('overloaded', 'too many requests wait for the log of the leader'));
  }

  /**
   * No leader has been reached for too long: those that wait are told so, and those that come before there is one, so
   * that clients try another server.
   */
  lost(): void {
    if (this.#route !== undefined) return;
    this.#isLost = true;
    this.#failAll(new ProposalError('noLeader', 'no leader was reached for too long'));
  }

  stop(): void {
    this.#failAll(new ProposalError('stopped', 'the server is stopping'));
  }

  #answered(id: bigint, outcome: number | Error): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    for (const waiter of waiting.asked) waiter(outcome);
    if (waiting.next.length === 0) return;
    this.#waiting.set(id, { asked: waiting.next, next: [] });
    this.#route?.renew(id);
  }

  #failAll(error: ProposalError): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { asked, next } of waiting) for (const waiter of [...asked, ...next]) waiter(error);
  }

  /**
   * A renewal does not share the answer to one that was asked before it: the lease may have been granted or revoked
   * in between, and its holder been told so.
   */
  #forward(id: bigint): Promise<number> {
    if (this.#isLost) return Promise.reject(new ProposalError('noLeader', 'no leader was reached for too long'));
    const waiting = this.#waiting.get(id);
    if (waiting === undefined && this.#waiting.size >= maxWaitingLeases) {
      return Promise.reject(new ProposalError('overloaded', 'too many renewals wait for a leader'));
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = (outcome) => {
        if (typeof outcome === 'number') resolve(outcome);
        else reject(outcome);
      };
      if (waiting !== undefined) {
        waiting.next.push(waiter);
        return;
      }
      this.#waiting.set(id, { asked: [waiter], next: [] });
      this.#route?.renew(id);
    });
  }
}
