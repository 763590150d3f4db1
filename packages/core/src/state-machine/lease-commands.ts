import { coreError } from '../core-error.ts';
import type { Lease } from '../lease/lease-types.ts';
import { isAlarmed } from './cluster-commands.ts';
import type { CommandResponse, LeaseAt, LeaseDate } from './command.ts';
import type { EntryContext, State } from './state.ts';

/** etcd's: 9,000,000,000 seconds. */
const maxTtlMs = 9_000_000_000_000;

export function applyLeaseGrant(
  state: State,
  context: EntryContext,
  grant: { readonly id: bigint; readonly ttlMs: number; readonly label: string },
): CommandResponse {
  if (isAlarmed(state, 'nospace')) return coreError('NoSpace');
  if (grant.ttlMs > maxTtlMs) return coreError('LeaseTtlTooLarge');
  const lease: Lease = {
    id: grant.id,
    ttlMs: grant.ttlMs,
    label: grant.label,
    renewIndex: context.index,
    liveEpoch: state.cluster.epoch,
    deadlineMs: undefined,
  };
  if (!state.leases.add(lease)) return coreError('LeaseExists');
  context.leaseChanges.push({ kind: 'granted', lease });
  return { kind: 'leaseGrant', revision: state.store.currentRevision, id: lease.id, ttlMs: lease.ttlMs };
}

export function applyLeaseRevoke(state: State, context: EntryContext, id: bigint): CommandResponse {
  if (!removeLease(state, id, undefined)) return coreError('LeaseNotFound');
  context.leaseChanges.push({ kind: 'removed', id, cause: 'revoked' });
  return { kind: 'leaseRevoke', revision: state.store.currentRevision };
}

export function applyExpireLeases(state: State, context: EntryContext, leases: readonly LeaseAt[]): CommandResponse {
  const expired: bigint[] = [];
  for (const { id, renewIndex } of leases) {
    if (!removeLease(state, id, renewIndex)) continue;
    context.leaseChanges.push({ kind: 'removed', id, cause: 'expired' });
    expired.push(id);
  }
  return { kind: 'expireLeases', revision: state.store.currentRevision, expired };
}

/** Removes the lease and all its keys at one revision; without keys there is no new revision. */
function removeLease({ leases, store }: State, id: bigint, renewIndex: number | undefined): boolean {
  const removed = leases.remove(id, renewIndex, (entry) => store.deleteEntry(entry));
  store.commit();
  return removed;
}

export function applyCheckpointLeases(
  state: State,
  context: EntryContext,
  leases: readonly LeaseDate[],
): CommandResponse {
  for (const { id, renewIndex, deadlineMs } of leases) {
    const lease = state.leases.get(id);
    if (lease === undefined || lease.renewIndex !== renewIndex || !isLive(state, lease)) continue;
    const checkpointed: Lease = { ...lease, deadlineMs };
    state.leases.replace(checkpointed);
    context.leaseChanges.push({ kind: 'checkpointed', lease: checkpointed });
  }
  return { kind: 'checkpointLeases', revision: state.store.currentRevision };
}

export function applyRenewLeases(state: State, context: EntryContext, ids: readonly bigint[]): CommandResponse {
  const renewed: bigint[] = [];
  for (const id of ids) {
    const lease = state.leases.get(id);
    if (lease === undefined) continue;
    renewed.push(id);
    if (isLive(state, lease)) continue;
    const live: Lease = {
      ...lease,
      renewIndex: context.index,
      liveEpoch: state.cluster.epoch,
      deadlineMs: undefined,
    };
    state.leases.replace(live);
    context.leaseChanges.push({ kind: 'renewed', lease: live });
  }
  return { kind: 'renewLeases', revision: state.store.currentRevision, renewed };
}

function isLive(state: State, lease: Lease): boolean {
  return lease.deadlineMs === undefined && lease.liveEpoch === state.cluster.epoch;
}
