import type { Requester } from '@tenure/core';
import type { RenewalHandler } from '../../api/lease-service.ts';
import { AccessError } from '../../replica/access-error.ts';
import { ProposalError } from '../../replica/proposal-error.ts';

/** A lease to renew, and who asks for it; undefined while authentication is disabled. */
export interface AskedRenewal {
  readonly id: bigint;
  readonly by: Requester | undefined;
}

export interface RenewalRoute {
  renew(renewal: AskedRenewal): void;
}

export interface RenewalForwarderOptions {
  /** Renews here, if this server leads and its leader lease is valid; undefined otherwise. */
  readonly renewHere: (id: bigint, by: Requester | undefined) => number | Promise<number> | undefined;
  /** The revision of the local state. */
  readonly revision: () => number;
}

type Waiter = (ttlMs: number | Error) => void;

/** The waiting renewals of one lease by one requester: for the question in flight, and for the one after it. */
interface WaitingRenewals extends AskedRenewal {
  asked: Waiter[];
  next: Waiter[];
}

/** Limit on leases with renewals that wait for a leader, each counted for each of its requesters. */
const maxWaitingLeases = 1_000_000;

/** What is allowed to one requester, or refused, is no answer to another. */
function keyOf({ id, by }: AskedRenewal): bigint | string {
  return by === undefined ? id : `${id} ${by.authRevision} ${by.user}`;
}

/**
 * Renewals on a server that may or may not lead. A renewal that the leader has not answered is sent to the next leader
 * for as long as a client waits. A renewal may be sent twice, since it only shows that its holder is alive.
 */
export class RenewalForwarder implements RenewalHandler {
  readonly #options: RenewalForwarderOptions;
  readonly #waiting = new Map<bigint | string, WaitingRenewals>();
  #route: RenewalRoute | undefined;
  #isLost = false;
  #leaderRevision = 0;

  constructor(options: RenewalForwarderOptions) {
    this.#options = options;
  }

  renew(id: bigint, by: Requester | undefined): number | Promise<number> {
    const outcome = this.#options.renewHere(id, by);
    if (outcome === undefined) return this.#forward(id, by);
    if (typeof outcome === 'number') return outcome;
    return outcome.catch((error: unknown) => {
      // The leader's own log is overloaded. No other server can be asked, so the renewal would wait without an answer.
      if (error instanceof ProposalError && error.code === 'overloaded') throw error;
      if (error instanceof AccessError) throw error;
      // If this server stops leading before the answer, the next leader is asked.
      return this.#forward(id, by);
    });
  }

  revision(): number {
    return Math.max(this.#options.revision(), this.#leaderRevision);
  }

  /** The link to the leader has opened or closed: all waiting renewals are sent again. */
  linked(route: RenewalRoute | undefined): void {
    this.#route = route;
    if (route === undefined) return;
    this.#isLost = false;
    for (const waiting of this.#waiting.values()) {
      waiting.asked.push(...waiting.next.splice(0));
      route.renew(waiting);
    }
  }

  /** This server leads now: all waiting renewals are handled here. */
  leads(): void {
    this.#isLost = false;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { id, by, asked, next } of waiting) {
      const tell = (result: number | Error): void => {
        for (const waiter of [...asked, ...next]) waiter(result);
      };
      const outcome = this.renew(id, by);
      if (typeof outcome === 'number') tell(outcome);
      else outcome.then(tell, tell);
    }
  }

  renewed(renewal: AskedRenewal, ttlMs: number, revision: number): void {
    this.#leaderRevision = Math.max(this.#leaderRevision, revision);
    this.#answered(renewal, ttlMs);
  }

  /** The leader has refused the renewals that wait for this question; the error is for their clients. */
  refused(renewal: AskedRenewal, error: Error): void {
    this.#answered(renewal, error);
  }

  /**
   * No leader has been reached for too long. Waiting renewals are refused, and so are later ones until there is a
   * leader, so that clients try another server.
   */
  lost(): void {
    if (this.#route !== undefined) return;
    this.#isLost = true;
    this.#failAll(new ProposalError('noLeader', 'no leader was reached for too long'));
  }

  stop(): void {
    this.#failAll(new ProposalError('stopped', 'the server is stopping'));
  }

  #answered(renewal: AskedRenewal, outcome: number | Error): void {
    const key = keyOf(renewal);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#waiting.delete(key);
    for (const waiter of waiting.asked) waiter(outcome);
    if (waiting.next.length === 0) return;
    const { id, by, next: asked } = waiting;
    this.#waiting.set(key, { id, by, asked, next: [] });
    this.#route?.renew({ id, by });
  }

  #failAll(error: ProposalError): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { asked, next } of waiting) for (const waiter of [...asked, ...next]) waiter(error);
  }

  /**
   * A renewal does not share the answer to a question sent before it: the lease may have been granted or revoked in
   * between, and its holder knows that.
   */
  #forward(id: bigint, by: Requester | undefined): Promise<number> {
    if (this.#isLost) return Promise.reject(new ProposalError('noLeader', 'no leader was reached for too long'));
    const key = keyOf({ id, by });
    const waiting = this.#waiting.get(key);
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
      this.#waiting.set(key, { id, by, asked: [waiter], next: [] });
      this.#route?.renew({ id, by });
    });
  }
}
