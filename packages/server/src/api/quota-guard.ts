import type { RequestOp, StateMachine, TxnRequest } from '@tenure/core';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { statusNamed } from './status-of.ts';

/** Whether a transaction may put a key, in either branch: etcd's quota checks that. */
export function mayPut(txn: TxnRequest): boolean {
  return txn.success.some(opMayPut) || txn.failure.some(opMayPut);
}

function opMayPut(op: RequestOp): boolean {
  return op.kind === 'put' || (op.kind === 'txn' && mayPut(op.txn));
}

/**
 * Refuses growth of the state beyond its quota. The first refusal raises the NOSPACE alarm through the log, and from
 * then on every server refuses growth until it is disarmed (`SpaceAlarmMonitor`, or an operator); deletes, revokes and
 * compactions continue.
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
    // An alarm that exists when this server starts was presumably raised by an earlier run.
    this.#hasRaised = this.#isRaised;
  }

  /**
   * Whether the alarm of this server was raised by its quota, and not by hand. Once it is seen to have ended, the next
   * one is not the quota's until the quota is exceeded again: so call this when it may have ended.
   */
  hasRaised(): boolean {
    this.#hasRaised &&= this.#raising !== undefined || this.#isRaised;
    return this.#hasRaised;
  }

  get #isRaised(): boolean {
    return this.#replica.state.alarms.some(({ alarm, memberId }) => alarm === 'nospace' && memberId === this.#memberId);
  }

  /**
   * Undefined if a request of that size fits. Otherwise, and for any size while the alarm is raised, a promise that
   * rejects with NoSpace: the first one not before the alarm is visible.
   */
  admit(requestBytes: number): Promise<never> | undefined {
    const state: StateMachine = this.#replica.state;
    if (state.alarms.some(({ alarm }) => alarm === 'nospace')) return this.#refuse();
    if (state.sizeForQuotaBytes + requestBytes <= this.#quotaBytes) return undefined;
    this.#raising ??= this.#raise().finally(() => (this.#raising = undefined));
    return this.#raising.then(() => this.#refuse());
  }

  /** A refusal without an alarm is better than none: a failure to raise the alarm is ignored here. */
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
