import type { RequestOp, StateMachine, TxnRequest } from '@tenure/core';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { statusNamed } from './status-of.ts';

/** Whether a transaction may put a key, on whichever branch: that is what etcd's quota goes by. */
export function mayPut(txn: TxnRequest): boolean {
  return txn.success.some(opMayPut) || txn.failure.some(opMayPut);
}

function opMayPut(op: RequestOp): boolean {
  return op.kind === 'put' || (op.kind === 'txn' && mayPut(op.txn));
}

/**
 * Refuses what would grow the state beyond its quota. The first refusal raises the NOSPACE alarm through the log, and
 * from then on every server refuses growth until it is disarmed (`SpaceKeeper`, or an operator); deletes, revokes and
 * compactions go on.
 */
export class QuotaGuard {
  readonly #replica: ReplicaAccess;
  readonly #quotaBytes: number;
  readonly #memberId: bigint;
  #raising: Promise<void> | undefined;
  #hasRaised: boolean;

  constructor(replica: ReplicaAccess, quotaBytes: number, memberId: bigint) {
    this.#replica = replica;
    this.#quotaBytes = quotaBytes;
    this.#memberId = memberId;
    // What stands when this server starts was raised by an earlier run, as far as anybody can know.
    this.#hasRaised = this.#isRaised;
  }

  /**
   * Whether the alarm that stands in the name of this server was raised by its quota, and not by hand. Once it is found
   * to have ended, the next one is somebody else's until the quota is passed again: so ask when it may have.
   */
  hasRaised(): boolean {
    this.#hasRaised &&= this.#raising !== undefined || this.#isRaised;
    return this.#hasRaised;
  }

  get #isRaised(): boolean {
    return this.#replica.state.alarms.some(({ alarm, memberId }) => alarm === 'nospace' && memberId === this.#memberId);
  }

  /**
   * Undefined if a request of that size fits. Else, and while the alarm is raised for any size, a promise that
   * rejects with NoSpace: the first one not before the alarm can be seen.
   */
  admit(requestBytes: number): Promise<never> | undefined {
    const state: StateMachine = this.#replica.state;
    if (state.alarms.some(({ alarm }) => alarm === 'nospace')) return this.#refuse();
    if (state.sizeForQuotaBytes + requestBytes <= this.#quotaBytes) return undefined;
    this.#raising ??= this.#raise().finally(() => (this.#raising = undefined));
    return this.#raising.then(() => this.#refuse());
  }

  /** A refusal without an alarm is better than none: whether the alarm could be raised makes no difference here. */
  async #raise(): Promise<void> {
    this.#hasRaised = true;
    await this.#replica
      .propose({ kind: 'alarm', action: 'activate', memberId: this.#memberId, alarm: 'nospace' })
      .catch(() => undefined);
  }

  #refuse(): Promise<never> {
    return Promise.reject(statusNamed('NoSpace'));
  }
}
