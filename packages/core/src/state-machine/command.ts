import type { TxnLimits } from '../mvcc/txn-limits.ts';
import type {
  DeleteRangeRequest,
  DeleteRangeResult,
  PutRequest,
  PutResult,
  TxnRequest,
  TxnResult,
} from '../mvcc/kv-types.ts';
import type { AuthChange, Requester } from '../auth/auth-types.ts';
import type { CoreError } from '../core-error.ts';

/**
 * Every command that can change the state. Ids, times and random values are part of the command: the core generates
 * none. A refused command changes nothing and returns a CoreError, the same on every server.
 *
 * `by` is set on the commands that clients ask for while authentication is enabled. Their permission is checked when
 * they are applied.
 */
export type Command = CommandBody & { readonly by?: Requester };

export type CommandBody =
  | { readonly kind: 'put'; readonly put: PutRequest }
  | { readonly kind: 'deleteRange'; readonly deleteRange: DeleteRangeRequest }
  | { readonly kind: 'txn'; readonly txn: TxnRequest }
  | { readonly kind: 'compact'; readonly revision: number }
  | { readonly kind: 'leaseGrant'; readonly id: bigint; readonly ttlMs: number; readonly label: string }
  | { readonly kind: 'leaseRevoke'; readonly id: bigint }
  /** Each lease is removed only if its renewIndex is still the given one. */
  | { readonly kind: 'expireLeases'; readonly leases: readonly LeaseAt[] }
  /** Checkpoints leases whose deadline is in memory: `deadlineMs` is in cluster time. */
  | { readonly kind: 'checkpointLeases'; readonly leases: readonly LeaseDate[] }
  /**
   * Moves the deadlines of checkpointed leases into the memory of the current epoch's leader, with the full TTL from
   * this entry on.
   */
  | { readonly kind: 'renewLeases'; readonly ids: readonly bigint[] }
  | { readonly kind: 'claim'; readonly epoch: number; readonly leader: string; readonly leaderLeaseMs: number }
  | { readonly kind: 'heartbeat' }
  /**
   * The leader stops, and member `target` may claim without waiting. Changes nothing unless it comes from the leader's
   * epoch.
   */
  | { readonly kind: 'resign'; readonly target: bigint }
  /** The first command of a new log. `secret` is the shared secret of the cluster's servers. */
  | { readonly kind: 'createCluster'; readonly clusterId: bigint; readonly secret: string }
  | {
      readonly kind: 'registerMember';
      readonly id: bigint;
      readonly name: string;
      readonly clientUrls: readonly string[];
      /** See Member. */
      readonly peerUrls?: readonly string[] | undefined;
    }
  | { readonly kind: 'removeMember'; readonly id: bigint }
  /** From this entry on every transaction has these limits, on every server and at every replay. */
  | { readonly kind: 'setTxnLimits'; readonly limits: TxnLimits }
  | {
      readonly kind: 'alarm';
      readonly action: 'activate' | 'deactivate';
      readonly memberId: bigint;
      readonly alarm: AlarmKind;
    }
  | { readonly kind: 'auth'; readonly change: AuthChange };

export type AlarmKind = 'nospace' | 'corrupt';

export interface LeaseAt {
  readonly id: bigint;
  readonly renewIndex: number;
}

export interface LeaseDate extends LeaseAt {
  readonly deadlineMs: number;
}

/** One response per command, in order. */
export type CommandResponse =
  | CoreError
  | { readonly kind: 'put'; readonly revision: number; readonly put: PutResult }
  | { readonly kind: 'deleteRange'; readonly revision: number; readonly deleteRange: DeleteRangeResult }
  | { readonly kind: 'txn'; readonly revision: number; readonly txn: TxnResult }
  | { readonly kind: 'compact'; readonly revision: number }
  | { readonly kind: 'leaseGrant'; readonly revision: number; readonly id: bigint; readonly ttlMs: number }
  | { readonly kind: 'leaseRevoke'; readonly revision: number }
  /** The removed ids; the others had been renewed, revoked or granted again. */
  | { readonly kind: 'expireLeases'; readonly revision: number; readonly expired: readonly bigint[] }
  | { readonly kind: 'checkpointLeases'; readonly revision: number }
  /** The ids whose deadlines are now in memory; the others no longer exist. */
  | { readonly kind: 'renewLeases'; readonly revision: number; readonly renewed: readonly bigint[] }
  | { readonly kind: 'ok'; readonly revision: number };
