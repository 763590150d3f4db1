import { AccessCheck } from '../auth/access-check.ts';
import type { CoreError } from '../core-error.ts';
import type { Command } from './command.ts';
import type { State } from './state.ts';

/**
 * Whether the requester of a command may have it, by the auth data at this entry. Called while authentication is
 * enabled.
 *
 * Commands that only clients ask for need a requester. Compaction, alarms and the removal of members also come from
 * servers, and then have none: the server that a client asks has refused clients without an identity. Everything else
 * comes from servers alone; above all the expiry of a lease, which ends on time whatever happened to its owner.
 */
export function checkCommandAccess({ cluster, leases }: State, command: Command): CoreError | undefined {
  const { by } = command;
  const access = new AccessCheck(cluster.auth, leases, by);
  switch (command.kind) {
    case 'put':
      return access.put(command.put);
    case 'deleteRange':
      return access.deleteRange(command.deleteRange);
    case 'txn':
      return access.txn(command.txn);
    case 'leaseGrant':
      return access.user();
    case 'leaseRevoke':
      return access.writeKeysOf(command.id);
    case 'compact':
    case 'alarm':
    case 'removeMember':
      return by === undefined ? undefined : access.root();
    case 'auth':
      return isOfServers(command.change.kind) ? undefined : access.root();
    case 'expireLeases':
    case 'checkpointLeases':
    case 'renewLeases':
    case 'claim':
    case 'heartbeat':
    case 'resign':
    case 'createCluster':
    case 'registerMember':
    case 'setTxnLimits':
      return undefined;
  }
}

/** A token is issued for a password that a server has checked, and root is recovered by the operator of the log. */
function isOfServers(kind: Extract<Command, { kind: 'auth' }>['change']['kind']): boolean {
  return kind === 'issueToken' || kind === 'recoverRoot';
}
