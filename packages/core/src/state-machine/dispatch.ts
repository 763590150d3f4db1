import { coreError } from '../core-error.ts';
import { applyAuthChange } from './auth-commands.ts';
import {
  applyAlarm,
  applyClaim,
  applyCreateCluster,
  applyRegisterMember,
  applyRemoveMember,
  applyResign,
  applySetTxnLimits,
  isAlarmed,
  ok,
} from './cluster-commands.ts';
import type { Command, CommandResponse } from './command.ts';
import { checkCommandAccess } from './command-access.ts';
import { applyCompactCommand, applyDeleteRangeCommand, applyPutCommand, applyTxnCommand } from './kv-commands.ts';
import {
  applyCheckpointLeases,
  applyExpireLeases,
  applyLeaseGrant,
  applyLeaseRevoke,
  applyRenewLeases,
} from './lease-commands.ts';
import type { Member } from './cluster-state.ts';
import type { EntryContext, State } from './state.ts';

/** Each kind of command; true for client commands, which a server with a corrupt state refuses. */
const kinds: Readonly<Record<Command['kind'], boolean>> = {
  put: true,
  deleteRange: true,
  txn: true,
  compact: true,
  leaseGrant: true,
  leaseRevoke: true,
  expireLeases: false,
  checkpointLeases: false,
  renewLeases: false,
  claim: false,
  heartbeat: false,
  resign: false,
  createCluster: false,
  registerMember: false,
  removeMember: false,
  alarm: false,
  setTxnLimits: false,
  auth: false,
};

/** Throws for a command that this version does not know, which a newer server has written. */
export function assertKnown(command: Command, index: number): void {
  if (Object.hasOwn(kinds, command.kind)) return;
  throw new Error(
    `state machine: entry ${index} holds a command of the unknown kind "${command.kind}". ` +
      'A newer version has written to this log; start that version or a later one.',
  );
}

/** `position` is the command's index in its entry. The caller has checked the entry's epoch. */
export function dispatchCommand(
  state: State,
  context: EntryContext,
  command: Command,
  position: number,
): CommandResponse {
  if (state.cluster.auth.enabled) {
    const refused = checkCommandAccess(state, command);
    if (refused !== undefined) return refused;
  }
  if (kinds[command.kind] && isAlarmed(state, 'corrupt')) return coreError('Corrupt');
  switch (command.kind) {
    case 'put':
      return applyPutCommand(state, command.put);
    case 'deleteRange':
      return applyDeleteRangeCommand(state, command.deleteRange, context.isAwaited(position));
    case 'txn':
      return applyTxnCommand(state, command.txn, context.isAwaited(position));
    case 'compact':
      return applyCompactCommand(state, command.revision);
    case 'leaseGrant':
      return applyLeaseGrant(state, context, command);
    case 'leaseRevoke':
      return applyLeaseRevoke(state, context, command.id);
    case 'expireLeases':
      return applyExpireLeases(state, context, command.leases);
    case 'checkpointLeases':
      return applyCheckpointLeases(state, context, command.leases);
    case 'renewLeases':
      return applyRenewLeases(state, context, command.ids);
    case 'claim':
      // Only the first command of an entry may begin an epoch. Its epoch has been checked there.
      return position === 0 ? applyClaim(state, command) : coreError('StaleEpoch');
    case 'heartbeat':
      return ok(state);
    case 'resign':
      return applyResign(state, command.target);
    case 'createCluster':
      return applyCreateCluster(state, context.index, position, command);
    case 'registerMember':
      return applyRegisterMember(state, memberOf(command));
    case 'removeMember':
      return applyRemoveMember(state, command.id);
    case 'setTxnLimits':
      return applySetTxnLimits(state, command.limits);
    case 'alarm':
      return applyAlarm(state, command.action, { memberId: command.memberId, alarm: command.alarm });
    case 'auth':
      return applyAuthChange(state, command.change);
  }
}

function memberOf({ id, name, clientUrls, peerUrls = [] }: Extract<Command, { kind: 'registerMember' }>): Member {
  return { id, name, clientUrls, ...(peerUrls.length === 0 ? {} : { peerUrls }) };
}
