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
 * from then on every server refuses growth until an operator disarms it; deletes, revokes and compactions go on.
 */
export class QuotaGuard {
  readonly #replica: ReplicaAccess;
  readonly #quotaBytes: number;
  readonly #memberId: bigint;
  #raising: Promise<void> | undefined;

  constructor(replica: ReplicaAccess, quotaBytes: number, memberId: bigint) {
    this.#replica = replica;
    this.#quotaBytes = quotaBytes;
    this.#memberId = memberId;
  }

  /**
   * Undefined if a request of that size fits. Else, and while the alarm is raised for any size, a promise that
   * rejects with NoSpace: the first one not before the alarm can be seen.
   */
  admit(requestBytes: number): Promise<never> | undefined {
    const state: StateMachine = this.#replica.state;
    if (state.alarms.some(({ alarm }) => alarm === 'nospace')) return this.#refuse();
    if (state.sizeBytes + requestBytes <= this.#quotaBytes) return undefined;
    this.#raising ??= this.#raise().finally(() => (this.#raising = undefined));
    return this.#raising.then(() => this.#refuse());
  }

  /** A refusal without an alarm is better than none: whether the alarm could be raised makes no difference here. */
  async #raise(): Promise<void> {
    await this.#replica
      .propose({ kind: 'alarm', action: 'activate', memberId: this.#memberId, alarm: 'nospace' })
      .catch(() => undefined);
  }

  #refuse(): Promise<never> {
    return Promise.reject(statusNamed('NoSpace'));
  }
}
