import { AuthState } from '../auth/auth-state.ts';
import type { TxnLimits } from '../mvcc/txn-limits.ts';
import type { AlarmKind } from './command.ts';

export interface Member {
  readonly id: bigint;
  readonly name: string;
  readonly clientUrls: readonly string[];
  /** Where other servers reach it, never empty; missing if that is where clients do. */
  readonly peerUrls?: readonly string[];
}

export interface Alarm {
  readonly memberId: bigint;
  readonly alarm: AlarmKind;
}

/** Leader, cluster time, members and users. */
export interface ClusterState {
  /** 0n until the cluster is created. */
  clusterId: bigint;
  /** '' until the cluster is created. */
  secret: string;
  epoch: number;
  /** '' until the first claim. */
  leader: string;
  leaderLeaseMs: number;
  /** The member to which the leader of this epoch has resigned; 0n while it has not. */
  successor: bigint;
  clusterTimeMs: number;
  appliedIndex: number;
  /** Sorted by id. */
  members: readonly Member[];
  /** Sorted by member, then by kind. */
  alarms: readonly Alarm[];
  /** Undefined until an entry sets them: the log of an earlier version is replayed without limits. */
  txnLimits: TxnLimits | undefined;
  auth: AuthState;
}

export function emptyCluster(): ClusterState {
  return {
    clusterId: 0n,
    secret: '',
    successor: 0n,
    epoch: 0,
    leader: '',
    leaderLeaseMs: 0,
    clusterTimeMs: 0,
    appliedIndex: 0,
    members: [],
    alarms: [],
    txnLimits: undefined,
    auth: AuthState.initial,
  };
}
