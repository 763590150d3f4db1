import { coreError } from '../core-error.ts';
import type { TxnLimits } from '../mvcc/txn-limits.ts';
import type { Alarm, Member } from './cluster-state.ts';
import type { AlarmKind, CommandResponse } from './command.ts';
import type { State } from './state.ts';

/**
 * The first command of a new log. A later append of it comes from a server that has not read the log, so the response
 * is StaleEpoch.
 */
export function applyCreateCluster(
  state: State,
  index: number,
  position: number,
  created: { readonly clusterId: bigint; readonly secret: string },
): CommandResponse {
  if (index !== 1 || position !== 0) return coreError('StaleEpoch');
  state.cluster.clusterId = created.clusterId;
  state.cluster.secret = created.secret;
  return ok(state);
}

/** The caller has checked that the claim is for the next epoch. */
export function applyClaim(
  state: State,
  claim: { readonly epoch: number; readonly leader: string; readonly leaderLeaseMs: number },
): CommandResponse {
  state.leases.epochEnds.begin(claim.epoch, state.cluster.clusterTimeMs);
  state.cluster.epoch = claim.epoch;
  state.cluster.leader = claim.leader;
  state.cluster.leaderLeaseMs = claim.leaderLeaseMs;
  state.cluster.successor = 0n;
  return ok(state);
}

/**
 * Replaces an earlier registration of the same id. A name belongs to the first id registered with it: if two servers
 * start at once under a new name, each with a generated id, the second is refused.
 */
export function applyRegisterMember(state: State, member: Member): CommandResponse {
  const isTaken = state.cluster.members.some(({ id, name }) => name === member.name && id !== member.id);
  if (isTaken) return coreError('MemberExists');
  const others = state.cluster.members.filter((one) => one.id !== member.id);
  state.cluster.members = [...others, member].sort((a, b) => (a.id < b.id ? -1 : 1));
  return ok(state);
}

/** The epoch continues until the next claim, but its leader has promised to append nothing more in it. */
export function applyResign(state: State, target: bigint): CommandResponse {
  state.cluster.successor = target;
  return ok(state);
}

/** Idempotent: the removal of an unknown member succeeds. The member's alarms are removed as well. */
export function applyRemoveMember(state: State, id: bigint): CommandResponse {
  state.cluster.members = state.cluster.members.filter((one) => one.id !== id);
  state.cluster.alarms = state.cluster.alarms.filter((one) => one.memberId !== id);
  return ok(state);
}

/** Invalid limits would leave apply unbounded, so such a command changes nothing. */
export function applySetTxnLimits(
  state: State,
  { maxRows, maxReplyBytes, maxComparedBytes }: TxnLimits,
): CommandResponse {
  const isLimit = maxRows > 0 && maxReplyBytes > 0 && maxComparedBytes > 0;
  if (isLimit) state.cluster.txnLimits = { maxRows, maxReplyBytes, maxComparedBytes };
  return ok(state);
}

export function applyAlarm(state: State, action: 'activate' | 'deactivate', alarm: Alarm): CommandResponse {
  const others = state.cluster.alarms.filter((one) => one.memberId !== alarm.memberId || one.alarm !== alarm.alarm);
  const alarms = action === 'activate' ? [...others, alarm] : others;
  state.cluster.alarms = alarms.sort(compareAlarms);
  return ok(state);
}

/** Whether any member has raised the alarm, which then holds for all. */
export function isAlarmed(state: State, kind: AlarmKind): boolean {
  return state.cluster.alarms.length > 0 && state.cluster.alarms.some((one) => one.alarm === kind);
}

export function ok(state: State): CommandResponse {
  return { kind: 'ok', revision: state.store.currentRevision };
}

function compareAlarms(a: Alarm, b: Alarm): number {
  if (a.memberId !== b.memberId) return a.memberId < b.memberId ? -1 : 1;
  return a.alarm < b.alarm ? -1 : a.alarm > b.alarm ? 1 : 0;
}
